"""The functions of templates. `and` and `or` evaluate only what they need, so the evaluation itself has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deepgrid.modules.gotemplate.block_yaml import quoted, to_yaml
from deepgrid.modules.gotemplate.lookup import Unfit, Unset, is_true, kind_of, text_of

WIDEST_INDENT = 200
LAZY = ("and", "or")


def call(name: str, arguments: list[Any]) -> Any:
    """The result of a function. Raises Unfit."""
    function, least, most = FUNCTIONS[name]
    if not least <= len(arguments) <= most:
        wanted = str(least) if least == most else f"at least {least}" if most > 9 else f"{least} to {most}"
        raise Unfit(f"{name} takes {wanted} arguments, not {len(arguments)}")
    return function(*arguments)


def _indent(width: Any, text: Any) -> str:
    if isinstance(width, bool) or not isinstance(width, int) or not 0 <= width <= WIDEST_INDENT:
        raise Unfit(f"the width to indent by must be a number from 0 to {WIDEST_INDENT}")
    if not isinstance(text, str):
        raise Unfit(f"{kind_of(text)} cannot be indented; use toYaml first")
    pad = " " * width
    return pad + text.replace("\n", f"\n{pad}")


def _quote(*values: Any) -> str:
    return " ".join(quoted(text_of(value)) for value in values if value is not None)


def _default(otherwise: Any, *given: Any) -> Any:
    return given[0] if given and is_true(given[0]) else otherwise


def _equals(one: Any, other: Any) -> bool:
    one, other = _comparable(one), _comparable(other)
    if one is not None and other is not None and type(one) is not type(other):
        raise Unfit(f"{kind_of(one)} cannot be compared with {kind_of(other)}")
    return bool(one == other)


def _less(one: Any, other: Any) -> bool:
    one, other = _comparable(one), _comparable(other)
    if type(one) is not type(other) or not isinstance(one, int | str) or isinstance(one, bool):
        raise Unfit(f"{kind_of(one)} cannot be compared with {kind_of(other)} by order")
    return bool(one < other)


def _comparable(value: Any) -> str | int | bool | None:
    if value is None or isinstance(value, Unset):
        return None
    if not isinstance(value, str | int):
        raise Unfit(f"{kind_of(value)} cannot be compared")
    return value


MANY = 100
FUNCTIONS: dict[str, tuple[Callable[..., Any], int, int]] = {
    "toYaml": (to_yaml, 1, 1),
    "indent": (_indent, 2, 2),
    "nindent": (lambda width, text: "\n" + _indent(width, text), 2, 2),
    "quote": (_quote, 0, MANY),
    "default": (_default, 1, 2),
    "eq": (lambda one, *others: any(_equals(one, other) for other in others), 2, MANY),
    "ne": (lambda one, other: not _equals(one, other), 2, 2),
    "lt": (_less, 2, 2),
    "gt": (lambda one, other: _less(other, one), 2, 2),
    "not": (lambda value: not is_true(value), 1, 1),
    "and": (lambda *values: values[-1], 1, MANY),
    "or": (lambda *values: values[-1], 1, MANY),
}
