"""The functions of templates. `and` and `or` evaluate only what they need, so the evaluation itself has them.

`toYaml` writes YAML of several lines, which may be indented as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from deepgrid.modules.gotemplate.lookup import Part, Unfit, Unset, is_true, kind_of, text_of
from deepgrid.workflow.models.base import Model

_PLAIN = re.compile(r"[A-Za-z_/][\w./@+-]*(?: [\w./@+-]+)*\Z", re.A)
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_ESCAPES |= {"\\": "\\\\", '"': '\\"'}


def to_yaml(value: Any) -> str:
    """Return a value as block-style YAML, without a line end. Raises Unfit."""
    if isinstance(value, Part | Unset):
        raise Unfit("a module cannot see this part as a whole; name the fields that it needs")
    return "\n".join(_lines(_plain(value)))


def quoted(text: str) -> str:
    """Return a text in double quotes, on one line, as Go's %q writes it. It is YAML too."""
    return '"' + "".join(_escaped(c) for c in text) + '"'


def _plain(value: Any) -> Any:
    if isinstance(value, Model):
        return value.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, part in value.items():
            nested = isinstance(part, dict | list) and part
            yield f"{_scalar(key)}:" if nested else f"{_scalar(key)}: {_scalar(part)}"
            yield from (f"  {line}" for line in _lines(part)) if nested else ()
    elif isinstance(value, list) and value:
        for item in value:
            for number, line in enumerate(_lines(item)):
                yield f"  {line}" if number else f"- {line}"
    else:
        yield _scalar(value)


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value if _PLAIN.match(value) and value.lower() not in _WORDS else quoted(value)
    return str(value)  # a number, or an empty list or mapping


def _escaped(c: str) -> str:
    if c in _ESCAPES:
        return _ESCAPES[c]
    if c.isprintable():
        return c
    code = ord(c)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


WIDEST_INDENT = 200
LAZY = ("and", "or")


def call(name: str, arguments: list[Any]) -> Any:
    """Return the result of a function. Raises Unfit."""
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
