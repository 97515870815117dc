"""Translates pydantic's errors into sentences for the author of a workflow file.

No sentence repeats a value of the file, except a wrong choice among a few fixed words.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from pydantic import ValidationError

from deepgrid.workflow.base import Model, field_of, model_in, yaml_names
from deepgrid.workflow.job import Definition
from deepgrid.workflow.partial import Rule, disagreements
from deepgrid.workflow.yaml_nodes import Path

Fault = tuple[Path, str, bool]  # place, sentence, and whether the field's name (not its value) is wrong

MOST_SHOWN = 100

_SENTENCES = {
    "missing": "is required",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "string_type": "must be text; put it in quotes",
    "model_type": "must be a mapping of fields",
    "model_attributes_type": "must be a mapping of fields",
    "dict_type": "must be a mapping of fields",
    "tuple_type": "must be a list",
    "recursion_loop": "is nested too deeply",
}


def faults_of(error: ValidationError, model: type[Model] = Definition) -> Iterator[Fault]:
    """All faults of one validation, in the order of the model. A long list ends with the number of further faults."""
    yield from islice(_all_of(error, model), MOST_SHOWN)
    more = error.error_count() - MOST_SHOWN
    if more > 0:
        yield (), f"has {more} more faults", False


def all_faults(error: ValidationError, model: type[Model], value: object, rule: Rule | None = None) -> list[Fault]:
    """All faults of `value`: wrong fields, and disagreements between the correct ones.

    `rule` is an additional rule for the model.
    """
    told = list(_all_of(error, model))
    if isinstance(value, Mapping):
        places = {path for path, _, _ in told}
        between = disagreements(model, value, places, rule)
        told += [(path, what, False) for path, what in between if path not in places]
    return told


def _all_of(error: ValidationError, model: type[Model]) -> Iterator[Fault]:
    for item in error.errors(include_url=False):
        path = tuple(item["loc"])
        if item["type"] == "located":
            yield from ((place, sentence, False) for place, sentence in item["ctx"]["faults"])
        elif item["type"] == "extra_forbidden":
            yield path, _unknown(path, model), True
        else:
            yield path, _sentence(item), False


def dotted(path: Path, whole: str = "the job") -> str:
    """A path as text, such as `steps[0].run.command`; `whole` for the empty path."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{_short(part)}" for part in path)
    return text.removeprefix(".") or whole


def _sentence(item: Any) -> str:
    kind, context = item["type"], item.get("ctx", {})
    if kind == "literal_error":
        allowed = context["expected"].replace("''", "nothing").replace("'", "").replace(" or ", ", ")
        words = allowed.split(", ")
        near = difflib.get_close_matches(_short(item["input"]), words, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        return f"{_short(item['input'])!r} is not one of {allowed}{hint}"
    if kind == "greater_than_equal":
        return f"must be at least {context['ge']}"
    if kind == "less_than_equal":
        return f"must be at most {context['le']}"
    if kind == "too_long":
        return f"must not have more than {context['max_length']} entries"
    return _SENTENCES.get(kind, str(item["msg"]))


def _unknown(path: Path, root: type[Model]) -> str:
    model, name = _model_at(path[:-1], root), str(path[-1])
    if model is None:
        return "unknown field"
    names = {known.lower(): known for known in yaml_names(model)}
    near = difflib.get_close_matches(_short(name).lower(), names, n=1)
    return f"unknown field (did you mean '{names[near[0]]}'?)" if near else "unknown field"


def _model_at(path: Path, root: type[Model]) -> type[Model] | None:
    """The model at a path below `root`, or None."""
    model: type[Model] | None = root
    for part in path:
        if isinstance(part, str):
            field = field_of(model, part) if model else None
            model = model_in(field.annotation) if field else None
    return model


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 40 else text[:40] + "..."
