"""Writes YAML of several lines, which may be indented as a whole, and texts in quotes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from deepgrid.modules.gotemplate.lookup import plain_data

_PLAIN = re.compile(r"[A-Za-z_/][\w./@+-]*(?: [\w./@+-]+)*\Z", re.A)
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_ESCAPES |= {"\\": "\\\\", '"': '\\"'}


def to_yaml(value: Any) -> str:
    """Return a value as block-style YAML, without a line end. Raises Unfit."""
    return "\n".join(_lines(plain_data(value)))


def quote(text: str) -> str:
    """Return a text in double quotes, on one line, as Go's %q writes it. It is YAML too."""
    return '"' + "".join(_escape(c) for c in text) + '"'


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
        return value if _PLAIN.match(value) and value.lower() not in _WORDS else quote(value)
    return str(value)  # a number, or an empty list or mapping


def _escape(c: str) -> str:
    if c in _ESCAPES:
        return _ESCAPES[c]
    if c.isprintable():
        return c
    code = ord(c)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
