"""Texts. Numbers are counts of bytes where Go counts bytes."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from typing import Any

from deepgrid.modules.gotemplate.functions.arguments import MOST_CHARACTERS, count, position, require_short, text
from deepgrid.modules.gotemplate.functions.printing import format_values, printed_by_format
from deepgrid.modules.gotemplate.functions.yaml import quote
from deepgrid.modules.gotemplate.lookup import Unfit, Unset, is_list, kind_of, text_of

WIDEST_INDENT = 200
_SPACE = " \t\n\v\f\r\x85\xa0"


def _indent(width: Any, given: Any) -> str:
    if isinstance(width, bool) or not isinstance(width, int) or not 0 <= width <= WIDEST_INDENT:
        raise Unfit(f"the width to indent by must be a number from 0 to {WIDEST_INDENT}")
    if not isinstance(given, str):
        raise Unfit(f"{kind_of(given)} cannot be indented; use toYaml first")
    pad = " " * width
    require_short(width * (given.count("\n") + 1))
    return pad + given.replace("\n", f"\n{pad}")


def _quote(*values: Any) -> str:
    return " ".join(quote(text_of(value)) for value in values if value is not None)


def _strings(value: Any) -> list[str]:
    """Return the values of a list as texts. Like sprig, leave out what is nil."""
    return [text_of(item) for item in (value if is_list(value) else [value]) if item is not None]


def _join(separator: Any, values: Any) -> str:
    strings = _strings(values)
    require_short(len(text(separator)) * len(strings))
    return str(separator).join(strings)


def _split(separator: Any, given: Any) -> list[str]:
    return text(given).split(separator) if text(separator) else list(text(given))


def _split_map(separator: Any, given: Any) -> dict[str, str]:
    """Return the parts of a text as a map with the keys `_0`, `_1`, ..."""
    return {f"_{number}": part for number, part in enumerate(_split(separator, given))}


def _split_map_at_most(separator: Any, most: Any, given: Any) -> dict[str, str]:
    """Return the same with at most this many parts; 0 or less means all."""
    parts = _split(separator, given)
    if 0 < position(most) < len(parts):
        parts[most - 1 :] = [str(separator).join(parts[most - 1 :])]
    return {f"_{number}": part for number, part in enumerate(parts)}


def _repeat(number: Any, given: Any) -> str:
    require_short(count(number, MOST_CHARACTERS) * len(text(given)))
    return str(given) * int(number)


def _replace(old: Any, new: Any, given: Any) -> str:
    require_short(len(text(new)) * text(given).count(text(old)))
    return str(given).replace(old, new)


def _substring(start: Any, stop: Any, given: Any) -> str:
    data, start, stop = text(given).encode(), position(start), position(stop)
    if start < 0:
        start = 0
    return data[start : len(data) if stop < 0 or stop > len(data) else stop].decode(errors="replace")


def _truncate(number: Any, given: Any) -> str:
    data, number = text(given).encode(), position(number)
    return (data[:number] if number >= 0 else data[number:] if -number < len(data) else data).decode(errors="replace")


def _abbreviate(width: Any, given: Any) -> str:
    width = count(width)
    return text(given) if width < 4 or len(text(given)) <= width else f"{given[: width - 3]}..."


def _abbreviated_on_both_sides(left: Any, width: Any, given: Any) -> str:
    left, width, whole = position(left), count(width), text(given)
    kept = width - 3
    if width < 4 or (left > 0 and width < 7) or len(whole) <= width:
        return whole
    left = min(left, len(whole) - kept)
    if left <= 4:
        return f"{whole[:kept]}..."
    return f"...{_abbreviate(kept, whole[left:])}"


def _cat(*values: Any) -> str:
    return " ".join(text_of(value) for value in values if value is not None and not isinstance(value, Unset))


def _title(given: Any) -> str:
    return re.sub(r"(?<![\w'])\w", lambda found: found[0].upper(), text(given))


def _untitle(given: Any) -> str:
    return re.sub(r"(?<![\w'])\w", lambda found: found[0].lower(), text(given))


def _words_of_name(given: Any) -> list[str]:
    """Return the words of a name such as `FirstName`, `first-name` or `first_name`."""
    apart = re.sub(r"([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])", r"\1\3 \2\4", text(given))
    return [word for word in re.split(r"[\s_.-]+", apart) if word]


def _plural(one: Any, many: Any, number: Any) -> str:
    return text(one) if position(number) == 1 else text(many)


def _wrap(width: Any, given: Any, *, line_end: str = "\n") -> str:
    require_short((len(line_end) + 1) * len(text(given)))
    lines = [textwrap.wrap(line, count(width) or 1, break_long_words=False) or [""] for line in text(given).split("\n")]
    return line_end.join(part for line in lines for part in line)


TEXTS: dict[str, Callable[..., Any]] = {
    "print": format_values,
    "println": lambda *values: " ".join(map(text_of, values)) + "\n",
    "printf": printed_by_format,
    "indent": _indent,
    "nindent": lambda width, given: "\n" + _indent(width, given),
    "quote": _quote,
    "squote": lambda *values: " ".join(f"'{text_of(value)}'" for value in values if value is not None),
    "trim": lambda given: text(given).strip(_SPACE),
    "trimAll": lambda cut, given: text(given).strip(text(cut)),
    "trimall": lambda cut, given: text(given).strip(text(cut)),
    "trimPrefix": lambda cut, given: text(given).removeprefix(text(cut)),
    "trimSuffix": lambda cut, given: text(given).removesuffix(text(cut)),
    "upper": lambda given: text(given).upper(),
    "lower": lambda given: text(given).lower(),
    "title": _title,
    "untitle": _untitle,
    "swapcase": lambda given: text(given).swapcase(),
    "snakecase": lambda given: "_".join(_words_of_name(given)).lower(),
    "kebabcase": lambda given: "-".join(_words_of_name(given)).lower(),
    "camelcase": lambda given: "".join(word[:1].upper() + word[1:] for word in _words_of_name(given)),
    "repeat": _repeat,
    "replace": _replace,
    "substr": _substring,
    "trunc": _truncate,
    "abbrev": _abbreviate,
    "abbrevboth": _abbreviated_on_both_sides,
    "nospace": lambda given: "".join(text(given).split()),
    "initials": lambda given: "".join(word[0] for word in text(given).split()),
    "wrap": _wrap,
    "wrapWith": lambda width, line_end, given: _wrap(width, given, line_end=text(line_end)),
    "plural": _plural,
    "contains": lambda part, given: text(part) in text(given),
    "hasPrefix": lambda part, given: text(given).startswith(text(part)),
    "hasSuffix": lambda part, given: text(given).endswith(text(part)),
    "cat": _cat,
    "join": _join,
    "split": _split_map,
    "splitn": _split_map_at_most,
    "splitList": _split,
    "toString": text_of,
    "toStrings": _strings,
}
