"""Comparisons, conditions, defaults and kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deepgrid.modules.gotemplate.functions.arguments import text
from deepgrid.modules.gotemplate.functions.printing import type_name
from deepgrid.modules.gotemplate.lookup import Unfit, Unset, is_list, is_true, kind_of, plain_data


def _equals(one: Any, other: Any) -> bool:
    one, other = _comparable(one), _comparable(other)
    if one is not None and other is not None and type(one) is not type(other):
        raise Unfit(f"{kind_of(one)} cannot be compared with {kind_of(other)}{_of_one_kind(one, other)}")
    return bool(one == other)


def _less(one: Any, other: Any) -> bool:
    one, other = _comparable(one), _comparable(other)
    if type(one) is not type(other) or not isinstance(one, int | float | str) or isinstance(one, bool):
        raise Unfit(f"{kind_of(one)} cannot be compared with {kind_of(other)} by order{_of_one_kind(one, other)}")
    return bool(one < other)


def _comparable(value: Any) -> str | int | float | bool | None:
    if value is None or isinstance(value, Unset):
        return None
    if not isinstance(value, str | int | float):
        raise Unfit(f"{kind_of(value)} cannot be compared")
    return value


def _of_one_kind(one: Any, other: Any) -> str:
    """Return an extra sentence for a comparison of a whole number with a fraction."""
    return "; convert one with int or float64" if {type(one), type(other)} == {int, float} else ""


def _default(otherwise: Any, *given: Any) -> Any:
    if len(given) > 1:
        raise Unfit("one value is needed in addition to the default")
    return given[0] if given and is_true(given[0]) else otherwise


def _coalesce(*values: Any) -> Any:
    return next((value for value in values if is_true(value)), None)


def _ternary(if_true: Any, if_false: Any, condition: Any) -> Any:
    if not isinstance(condition, bool):
        raise Unfit(f"{kind_of(condition)} is given where a truth value is wanted")
    return if_true if condition else if_false


def _fail(message: Any) -> Any:
    raise Unfit(text(message))


def _kind(value: Any) -> str:
    """Return Go's name of a kind."""
    if value is None or isinstance(value, Unset):
        return "invalid"
    if is_list(value):
        return "slice"
    named = {bool: "bool", int: "int", float: "float64", str: "string", dict: "map"}
    return named.get(type(value), "struct")


def _type(value: Any) -> str:
    """Return Go's name of a type."""
    if _kind(value) == "struct":
        raise Unfit("a part of the job has no type that a module can name")
    return type_name(value)


LOGIC: dict[str, Callable[..., Any]] = {
    "eq": lambda one, other, *more: any(_equals(one, candidate) for candidate in (other, *more)),
    "ne": lambda one, other: not _equals(one, other),
    "lt": _less,
    "le": lambda one, other: _less(one, other) or _equals(one, other),
    "gt": lambda one, other: _less(other, one),
    "ge": lambda one, other: _less(other, one) or _equals(one, other),
    "not": lambda value: not is_true(value),
    "and": lambda first, *more: (first, *more)[-1],
    "or": lambda first, *more: (first, *more)[-1],
    "default": _default,
    "empty": lambda value: not is_true(value),
    "coalesce": _coalesce,
    "ternary": _ternary,
    "all": lambda *values: all(is_true(value) for value in values),
    "any": lambda *values: any(is_true(value) for value in values),
    "fail": _fail,
    "kindOf": _kind,
    "kindIs": lambda kind, value: text(kind) == _kind(value),
    "typeOf": _type,
    "typeIs": lambda name, value: text(name) == _type(value),
    "typeIsLike": lambda name, value: text(name) == _type(value),
    "deepEqual": lambda one, other: bool(plain_data(one) == plain_data(other)),
}
