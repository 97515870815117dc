"""Go's print and printf, with Go's texts for verbs that do not fit."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from deepgrid.modules.gotemplate.functions.arguments import require_short, text
from deepgrid.modules.gotemplate.functions.yaml import quote
from deepgrid.modules.gotemplate.lookup import Unfit, Unset, is_list, text_of

WIDEST = 1000  # characters that a verb may fill
_VERB = re.compile(
    r"%(?P<flags>[-+# 0]*)(?P<width>\d+|\*)?(?:\.(?P<precision>\d+|\*)?)?(?:\[(?P<index>\d{1,9})\])?(?P<verb>.)?", re.S
)
_TYPES = {bool: "bool", int: "int", float: "float64", str: "string", dict: "map[string]interface {}"}


def format_values(*values: Any) -> str:
    """Return the values as text, with a space between two that are no texts."""
    parts: list[str] = []
    for number, value in enumerate(values):
        apart = number > 0 and not isinstance(value, str) and not isinstance(values[number - 1], str)
        parts.append(f" {text_of(value)}" if apart else text_of(value))
    return "".join(parts)


def printed_by_format(template: Any, *values: Any) -> str:
    """Return the text of Go's printf. Raises Unfit for `*` and for wide fields."""
    used, is_in_order = 0, True

    def filled(found: re.Match[str]) -> str:
        nonlocal used, is_in_order
        verb = found["verb"]
        if verb is None:
            return "%!(NOVERB)"
        if verb == "%":
            return "%"
        if found["index"]:
            used, is_in_order = int(found["index"]) - 1, False
            if not 0 <= used < len(values):
                used = max(0, min(used, len(values)))
                return f"%!{verb}(BADINDEX)"
        if used == len(values):
            return f"%!{verb}(MISSING)"
        used += 1
        return _format_value(verb, found, values[used - 1])

    made = _VERB.sub(filled, text(template))
    return made + _left_over(values[used:] if is_in_order else ())


def _left_over(values: Sequence[Any]) -> str:
    if not values:
        return ""
    return f"%!(EXTRA {', '.join(f'{type_name(value)}={text_of(value)}' for value in values)})"


def _format_value(verb: str, found: re.Match[str], value: Any) -> str:
    """Return one value as its verb prints it."""
    flags, is_exact = found["flags"], "." in found[0]
    width, precision = _number(found["width"]), _number(found["precision"]) if is_exact else None
    if is_list(value) and verb not in "vT":
        require_short((width + (precision or 0)) * len(value))
        return f"[{' '.join(_format_value(verb, found, item) for item in value)}]"
    maker = _MAKERS.get(verb)
    made = None if maker is None else maker(value, flags, precision)
    if made is None:
        return f"%!{verb}({type_name(value)}={text_of(value)})"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if "-" in flags:
        return made.ljust(width)
    if "0" in flags and (is_number or verb in "sqv") and not (precision is not None and isinstance(value, int)):
        sign = made[:1] if is_number and made[:1] in ("-", "+", " ") else ""
        return sign + made[len(sign) :].rjust(width - len(sign), "0")
    return made.rjust(width)


def _number(digits: str | None) -> int:
    if digits == "*" or int(digits or 0) > WIDEST:
        raise Unfit(f"widths must be numbers of at most {WIDEST}")
    return int(digits or 0)


def type_name(value: Any) -> str:
    """Return the name of a value's type in Go."""
    if value is None or isinstance(value, Unset):
        return "<nil>"
    return "[]interface {}" if is_list(value) else _TYPES.get(type(value), "struct")


def _any(value: Any, flags: str, precision: int | None) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return _format_integer("d", value, flags, precision)
    if isinstance(value, float) and precision is not None:
        return _fraction("g", value, flags, precision)
    if "#" in flags and isinstance(value, str):
        return quote(value)
    return text_of(value)


def _text(value: Any, flags: str, precision: int | None) -> str | None:
    return value[:precision] if isinstance(value, str) else None


def _format_quoted(value: Any, flags: str, precision: int | None) -> str | None:
    character = _character(value, flags, precision)
    if character is not None:
        return f"'{character}'"
    return quote(value[:precision]) if isinstance(value, str) else None


def _truth(value: Any, flags: str, precision: int | None) -> str | None:
    return text_of(value) if isinstance(value, bool) else None


def _character(value: Any, flags: str, precision: int | None) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return chr(value) if 0 <= value < 0x110000 and not 0xD800 <= value < 0xE000 else "\ufffd"


def _code_point(value: Any, flags: str, precision: int | None) -> str | None:
    return None if isinstance(value, bool) or not isinstance(value, int) else f"U+{value:04X}"


def _format_in_base(verb: str) -> Callable[[Any, str, int | None], str | None]:
    return lambda value, flags, precision: _format_integer(verb, value, flags, precision)


def _format_integer(verb: str, value: Any, flags: str, precision: int | None) -> str | None:
    if isinstance(value, str) and verb in "xX":
        return value.encode()[:precision].hex() if verb == "x" else value.encode()[:precision].hex().upper()
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    prefix = {"x": "0x", "X": "0X", "o": "0", "b": "0b", "O": "0o"}.get(verb, "") if "#" in flags or verb == "O" else ""
    digits = format(abs(value), verb.replace("O", "o")).rjust(precision or 0, "0")
    return _sign(value < 0, flags) + prefix + digits


def _fractional(verb: str) -> Callable[[Any, str, int | None], str | None]:
    return lambda value, flags, precision: _fraction(verb, value, flags, precision)


def _fraction(verb: str, value: Any, flags: str, precision: int | None) -> str | None:
    if not isinstance(value, float):
        return None
    if verb in "gG" and precision is None:
        made = text_of(abs(value))
    else:
        made = format(abs(value), f".{6 if precision is None else precision}{verb}")
    return _sign(value < 0, flags) + made


def _sign(is_negative: bool, flags: str) -> str:
    return "-" if is_negative else "+" if "+" in flags else " " if " " in flags else ""


_MAKERS: dict[str, Callable[[Any, str, int | None], str | None]] = {
    "v": _any,
    "s": _text,
    "q": _format_quoted,
    "t": _truth,
    "c": _character,
    "U": _code_point,
    "T": lambda value, flags, precision: type_name(value),
    **{verb: _format_in_base(verb) for verb in "dboOxX"},
    **{verb: _fractional(verb) for verb in "eEfFgG"},
}
