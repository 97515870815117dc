"""Translates pydantic's errors into sentences for the author of a workflow file.

No sentence repeats a value of the file, except a wrong choice among a few fixed words. Where some fields are
malformed, the rules between the other fields are checked too. So the author sees all faults together.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from deepgrid.plain_text import visible, without_hidden
from deepgrid.workflow.models.base import Model, NotKnown, field_of, is_list, model_in, yaml_names
from deepgrid.workflow.models.fields import LARGEST, megabytes_in
from deepgrid.workflow.models.job import Definition
from deepgrid.workflow.models.running import JobResources, StepRunResources
from deepgrid.workflow.models.walk import models_in
from deepgrid.workflow.yaml_nodes import Path

Rule = Callable[[Any], Iterable[tuple[Path, str]]]
Fault = tuple[Path, str, bool]  # place, sentence, and whether the field's name (not its value) is wrong

MOST_SHOWN = 100

_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")

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
    """Yield all faults of one validation, in the order of the model.

    A long list ends with the number of further faults.
    """
    yield from islice(_all_of(error, model), MOST_SHOWN)
    more = error.error_count() - MOST_SHOWN
    if more > 0:
        yield (), f"has {more} more faults", False


def all_faults(error: ValidationError, model: type[Model], value: object, rule: Rule | None = None) -> list[Fault]:
    """Return all faults of `value`: wrong fields, and disagreements between the correct ones.

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
    """Return a path as text, such as `steps[0].run.command`; `whole` for the empty path."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{_short(part)}" for part in path)
    return text.removeprefix(".") or whole


def _sentence(item: Any) -> str:
    kind, context, given = item["type"], item.get("ctx", {}), item["input"]
    if kind == "literal_error":
        return _no_choice(_short(given), context["expected"])
    if kind == "greater_than_equal":
        return f"must be at least {context['ge']}"
    if kind == "less_than_equal":
        most = f"must be at most {context['le']}" + (" (0777 in octal)" if context["le"] == 0o777 else "")
        return f"is too large: it {most}" if given > LARGEST else most
    if kind == "int_parsing_size":
        return "is too large"
    if kind == "too_long":
        return f"must not have more than {context['max_length']} entries"
    if kind == "int_type" and isinstance(given, str) and _LEADING_ZERO.fullmatch(given):
        return "must be a whole number without a leading zero"
    if kind == "int_type" and isinstance(given, str) and (megabytes := megabytes_in(given)):
        return f"must be a whole number without a unit; {given} of memory is {megabytes} MB"
    if kind == "int_type" and item["loc"][-1] in ("memPerCpu", "mem_per_cpu"):
        return "must be a whole number of MB, or an amount with a unit, such as 4G"
    if kind == "int_type" and isinstance(given, str) and given.isdecimal():
        return "must be a whole number; write it without quotes"
    if kind == "string_type" and given is None:
        return 'is empty; write "" for an empty text'
    return _SENTENCES.get(kind, str(item["msg"]))


def _no_choice(given: str, expected: str) -> str:
    allowed = expected.replace("''", "nothing").replace("'", "").replace(" or ", ", ")
    words = [word for word in allowed.split(", ") if not word.isdigit()]
    near = [word for word in words if word.endswith(f"/{given}")] or difflib.get_close_matches(given, words, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"'{given}' is not one of {allowed}{hint}"


def _unknown(path: Path, root: type[Model]) -> str:
    model = _model_at(path[:-1], root)
    return unknown_field(str(path[-1]), model, at_root=len(path) == 1) if model else "unknown field"


def unknown_field(name: str, model: type[Model], *, at_root: bool) -> str:
    """Return the fault of a field that `model` does not have, and its right place."""
    expected = f"; expected at the root: {', '.join(yaml_names(model))}" if at_root else ""
    if model is JobResources and name == "gpusPerTask":  # of older files
        return "unknown field (did you mean 'gpus'? It is the number of GPUs of the whole job)"
    if model is StepRunResources and name == "gpus":
        return "unknown field (did you mean 'gpusPerTask'?)"
    if at_root and name == "job":
        return f"unknown field; its fields belong at the root{expected}"
    holder = next((holder for holder in _holders(model) if name in yaml_names(holder[1])), None)
    if holder:
        return f"unknown field; it belongs in `{holder[0]}`{expected}"
    names = {known.lower(): known for known in yaml_names(model)}
    near = difflib.get_close_matches(without_hidden(name[:40]).lower(), names, n=1)
    return f"unknown field (did you mean '{names[near[0]]}'?)" if near else f"unknown field{expected}"


def _holders(model: type[Model]) -> Iterator[tuple[str, type[Model]]]:
    """Yield fields of `model` that contain models, each with its model. Lists come last."""
    held = [(name, model_in(field_of(model, name).annotation), field_of(model, name)) for name in yaml_names(model)]
    for listed in (False, True):
        for name, inner, field in held:
            if inner and inner is not model and is_list(field.annotation) == listed:
                yield name, inner


def _model_at(path: Path, root: type[Model]) -> type[Model] | None:
    """Return the model at a path below `root`, or None."""
    model: type[Model] | None = root
    for part in path:
        if isinstance(part, str):
            field = field_of(model, part) if model else None
            model = model_in(field.annotation) if field else None
    return model


def _short(value: object) -> str:
    text = str(value)
    return visible(text if len(text) <= 40 else text[:40] + "...")


def disagreements(
    model: type[Model], value: Mapping[str, Any], wrong: Collection[Path], rule: Rule | None = None
) -> Iterator[tuple[Path, str]]:
    """Yield faults between the fields of `value`, a mapping for `model`. The fields at the `wrong` places are
    malformed.

    `rule` is checked in addition to the validators of the models.
    """
    whole = _partial(model, value, wrong, ())
    with suppress(NotKnown):
        yield from rule(whole) if rule else ()
    for place, part in models_in(whole):
        for validator in type(part).__pydantic_decorators__.model_validators.values():
            try:
                validator.func(part)
            except NotKnown:
                continue
            except PydanticCustomError as error:
                if error.type == "located":
                    yield from (error.context or {})["faults"]
                else:
                    yield place, error.message()


def _partial(model: type[Model], value: Any, wrong: Collection[Path], path: Path) -> Model:
    """Return the model with the well-formed fields only. Reading any other field raises NotKnown."""
    part = model.model_construct()
    if not isinstance(value, Mapping):
        part.__dict__.clear()
        return part
    for name, field in model.model_fields.items():
        spelled = field.alias or name
        place, given = (*path, spelled), value.get(spelled)
        annotation: Any = field.annotation
        inner, listed = model_in(annotation), is_list(annotation)
        if inner and not listed and isinstance(given, Mapping):
            part.__dict__[name] = _partial(inner, given, wrong, place)
        elif inner and listed and isinstance(given, list):
            part.__dict__[name] = tuple(_partial(inner, one, wrong, (*place, n)) for n, one in enumerate(given))
        elif place in wrong or (isinstance(given, list) and any((*place, n) in wrong for n in range(len(given)))):
            part.__dict__.pop(name, None)
        elif given is not None:
            part.__dict__[name] = tuple(given) if isinstance(given, list) else given
    return part
