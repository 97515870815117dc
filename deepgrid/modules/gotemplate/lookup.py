"""The values of a template: which fields they have, whether they count as true, and their text.

Values are texts, numbers, truth values, lists (tuples too), maps (dictionaries with texts as keys), and parts of the
job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite, isnan
from typing import Any

from deepgrid.workflow.models.base import Model


class Unfit(Exception):
    """A value cannot be used in this way."""


@dataclass(frozen=True)
class Part:
    """A part of the job with the few fields that a module sees, or a version. It is printed as `text` or its name."""

    name: str
    fields: Mapping[str, Any]
    text: str = ""


@dataclass(frozen=True)
class Unset:
    """A field of a part that is not set itself, or an entry that a map does not have. It counts as false.

    Only a missing entry can be printed.
    """

    name: str
    is_entry: bool = False


def field_in(value: Any, name: str) -> Any:
    """Return a field of a value. Case is ignored, because Go's spelling of abbreviations varies. Raises Unfit."""
    if value is None or isinstance(value, Unset):
        return Unset(name)
    if isinstance(value, dict):
        return value.get(name, Unset(name, is_entry=True))
    if isinstance(value, Part):
        found = next((one for one in value.fields if one.lower() == name.lower()), None)
        if found is None:
            seen = ", ".join(f"{value.name}.{one}" for one in value.fields)
            raise Unfit(f"a module does not see {value.name}.{name[:40]}, only {seen}")
        return value.fields[found]
    if isinstance(value, Model):
        for attribute, field in type(value).model_fields.items():
            if (field.alias or attribute).lower() == name.lower():
                return getattr(value, attribute)
        raise Unfit(f"there is no field .{name[:40]}")
    raise Unfit(f"{kind_of(value)} has no field .{name[:40]}")


def is_true(value: Any) -> bool:
    """Return whether Go takes a value for true: it is set, and is not false, zero or empty."""
    return not isinstance(value, Unset) and (isinstance(value, Model | Part) or bool(value))


def is_list(value: Any) -> bool:
    """Return whether a value is a list."""
    return isinstance(value, tuple | list)


def kind_of(value: Any) -> str:
    """Return the kind of a value, in words."""
    if value is None or isinstance(value, Unset):
        return "an unset value"
    if isinstance(value, bool):
        return "a truth value"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, dict):
        return "a map"
    return "a text" if isinstance(value, str) else "a list" if is_list(value) else "a part of the job"


def text_of(value: Any) -> str:
    """Return a value as Go prints it. A part of the job is printed as its name. Raises Unfit for an unset field."""
    if isinstance(value, str):
        return value
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, int):
        return str(value)
    if is_list(value):
        return f"[{' '.join(map(text_of, value))}]"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{text_of(value[key])}' for key in sorted(value))}]"
    if isinstance(value, Unset):
        if value.is_entry:
            return "<no value>"
        raise Unfit(f"the field .{value.name[:40]} belongs to a part that is not set; use default or if")
    if isinstance(value, Part):
        return value.text or f"({value.name or '.'})"
    return f"({type(value).__name__})"


def _float(value: float) -> str:
    """Return the shortest text of a number, with an exponent below 1e-4 and from 1e6 on."""
    if not isfinite(value):
        return "NaN" if isnan(value) else "+Inf" if value > 0 else "-Inf"
    number = Decimal(repr(value)).normalize()
    exponent = number.adjusted()
    if value == 0 or -4 <= exponent < 6:
        return f"{number:f}"
    return f"{number.scaleb(-exponent):f}e{exponent:+03d}"


def plain_data(value: Any) -> Any:
    """Return a value as lists, dictionaries and plain values. Raises Unfit for a part that is seen by its fields."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Part) or (isinstance(value, Unset) and not value.is_entry):
        raise Unfit("a module cannot see this part as a whole; name the fields that it needs")
    if isinstance(value, Unset):
        return None
    if isinstance(value, Model):
        return value.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    if isinstance(value, dict):
        return {key: plain_data(part) for key, part in value.items()}
    return [plain_data(item) for item in value] if is_list(value) else value


MOST_NESTED_VALUES = 32
ITEM_WEIGHT, MODEL_WEIGHT = 16, 1000  # an item of a list, and a step of the job, in characters


def weight_of(value: Any, most: int) -> int:
    """Return how much text a value may become, in characters. Raises Unfit beyond `most`, or if it is too deep."""
    weight, waiting = 0, [(value, 0)]
    while waiting:
        part, depth = waiting.pop()
        weight += MODEL_WEIGHT if isinstance(part, Model) else ITEM_WEIGHT * (depth > 0)
        weight += len(part) if isinstance(part, str) else len(part.text) if isinstance(part, Part) else 0
        if depth > MOST_NESTED_VALUES:
            raise Unfit(f"makes a value nested deeper than {MOST_NESTED_VALUES} levels")
        if weight + ITEM_WEIGHT * len(waiting) > most:
            raise Unfit("makes too much text in between")
        if isinstance(part, dict):
            waiting += [(inner, depth + 1) for pair in part.items() for inner in pair]
        elif is_list(part):
            waiting += [(inner, depth + 1) for inner in part]
    return weight
