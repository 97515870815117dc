"""Arithmetic and conversions. Whole numbers have 64 bits; what is larger is refused."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import reduce
from typing import Any

from deepgrid.modules.gotemplate.functions.arguments import LARGEST, MOST_MADE, count, in_range, position
from deepgrid.modules.gotemplate.lookup import Unfit, text_of

_BASED = re.compile(r"[-+]?(0x[0-9a-f_]+|0b[01_]+|0o?[0-7_]*|[1-9][0-9_]*)", re.I | re.A)
_DECIMAL = re.compile(r"[-+]?[0-9]+", re.A)
_OCTAL = re.compile(r"[-+]?[0-7]+", re.A)
_FLOAT = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?|[-+]?inf(inity)?|nan", re.I | re.A)


def _read(text: str, pattern: re.Pattern[str], base: int) -> int:
    """Return a whole number of 64 bits; 0 for a text that is none."""
    try:
        return in_range(int(text, base)) if pattern.fullmatch(text) else 0
    except (ValueError, Unfit):  # misplaced underscores, or too many digits
        return 0


def to_int(value: Any) -> int:
    """Return a value as a whole number, as sprig does: 0 for a text that is no number. Texts may be octal (010)."""
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and abs(value) < LARGEST else 0
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        is_octal = re.fullmatch(r"[-+]?0_?[0-7][0-7_]*", value, re.A)
        return _read(value, _BASED, 8 if is_octal else 0)
    return 0


def to_float(value: Any) -> float:
    """Return a value as a number with a fraction: 0 for a text that is no number."""
    if isinstance(value, str):
        return float(value) if _FLOAT.fullmatch(value) else 0.0
    return float(value) if isinstance(value, int | float) else 0.0


def _each(function: Callable[[int, int], int]) -> Callable[..., int]:
    """Return a function that combines any number of whole numbers, from the left."""

    def combine(first: Any, *more: Any) -> int:
        return in_range(reduce(function, map(to_int, more), to_int(first)))

    return combine


def _each_float(function: Callable[[float, float], float]) -> Callable[..., float]:
    def combine(first: Any, *more: Any) -> float:
        return reduce(function, map(to_float, more), to_float(first))

    return combine


def _divide(one: Any, other: Any) -> int:
    one, other = to_int(one), to_int(other)
    if other == 0:
        raise Unfit("division by zero")
    return in_range(abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1))


def _divide_floats(one: float, other: float) -> float:
    if other == 0:
        raise Unfit("division by zero")
    return one / other


def _remainder(one: Any, other: Any) -> int:
    return to_int(one) - _divide(one, other) * to_int(other)


def _rounding(function: Callable[[float], int]) -> Callable[[Any], float]:
    """Return a function that rounds, and leaves infinity and NaN as they are."""

    def rounded(value: Any) -> float:
        number = to_float(value)
        return float(function(number)) if math.isfinite(number) else number

    return rounded


def _round(value: Any, places: Any, half: Any = 0.5) -> float:
    scale = 10.0 ** count(places, 15)
    scaled = to_float(value) * scale
    if not math.isfinite(scaled):
        return to_float(value)
    fraction = abs(scaled) % 1
    return math.copysign(math.floor(abs(scaled)) + (fraction >= to_float(half)), scaled) / scale


def _steps(first: int, behind: int, step: int) -> list[int]:
    if step == 0:
        return []
    found = range(first, behind, step)
    if len(found) > MOST_MADE:
        raise Unfit(f"makes more than {MOST_MADE} numbers")
    return list(found)


def _until(number: Any) -> list[int]:
    number = to_int(number)
    return _steps(0, number, 1 if number > 0 else -1)


def _sequence(*numbers: Any) -> str:
    """Return what the program `seq` prints, on one line."""
    given = [position(number) for number in numbers]
    if not 1 <= len(given) <= 3:
        return ""
    first, last = (given[0] if len(given) > 1 else 1), given[-1]
    step = given[1] if len(given) == 3 else 1 if last >= first else -1
    return " ".join(map(str, _steps(first, last + (1 if step > 0 else -1), step)))


NUMBERS: dict[str, Callable[..., Any]] = {
    "add": _each(lambda one, other: one + other),
    "add1": lambda value: in_range(to_int(value) + 1),
    "sub": lambda one, other: in_range(to_int(one) - to_int(other)),
    "mul": _each(lambda one, other: one * other),
    "div": _divide,
    "mod": _remainder,
    "max": _each(max),
    "min": _each(min),
    "biggest": _each(max),
    "addf": _each_float(lambda one, other: one + other),
    "add1f": lambda value: to_float(value) + 1,
    "subf": _each_float(lambda one, other: one - other),
    "mulf": _each_float(lambda one, other: one * other),
    "divf": _each_float(_divide_floats),
    "maxf": _each_float(max),
    "minf": _each_float(min),
    "floor": _rounding(math.floor),
    "ceil": _rounding(math.ceil),
    "round": _round,
    "int": to_int,
    "int64": to_int,
    "float64": to_float,
    "atoi": lambda value: _read(value, _DECIMAL, 10) if isinstance(value, str) else to_int(value),
    "toDecimal": lambda value: _read(text_of(value), _OCTAL, 8),
    "until": _until,
    "untilStep": lambda first, behind, step: _steps(position(first), position(behind), position(step)),
    "seq": _sequence,
}
