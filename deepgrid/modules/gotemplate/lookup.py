"""The values of a template: which fields they have, whether they count as true, and their text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deepgrid.workflow.models.base import Model


class Unfit(Exception):
    """A value cannot be used in this way."""


@dataclass(frozen=True)
class Part:
    """A part of the job with the few fields that a module sees."""

    name: str
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class Unset:
    """A field of a part that is not set itself. It counts as false, and cannot be printed."""

    name: str


def field_in(value: Any, name: str) -> Any:
    """Return a field of a value. Case is ignored, because Go's spelling of abbreviations varies. Raises Unfit."""
    if value is None or isinstance(value, Unset):
        return Unset(name)
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


def kind_of(value: Any) -> str:
    """Return the kind of a value, in words."""
    if value is None or isinstance(value, Unset):
        return "an unset value"
    if isinstance(value, bool):
        return "a truth value"
    if isinstance(value, int):
        return "a number"
    return "a text" if isinstance(value, str) else "a list" if isinstance(value, tuple | list) else "a part of the job"


def text_of(value: Any) -> str:
    """Return a value as Go prints it. Raises Unfit for parts of the job."""
    if isinstance(value, str):
        return value
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, tuple | list):
        return f"[{' '.join(map(text_of, value))}]"
    if isinstance(value, Unset):
        raise Unfit(f"the field .{value.name[:40]} belongs to a part that is not set; use default or if")
    raise Unfit("a part of the job cannot be printed; use toYaml, or one of its fields")
