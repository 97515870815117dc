"""Checks the rules between fields of a definition in which some fields are malformed.

The author then sees the faults between fields together with the malformed fields. A rule that reads a malformed field
raises NotKnown and is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from pydantic_core import PydanticCustomError

from deepgrid.workflow.models.base import Model, NotKnown, is_list, model_in
from deepgrid.workflow.models.rules.walk import models_in
from deepgrid.workflow.yaml_text.yaml_nodes import Path

Rule = Callable[[Any], Iterable[tuple[Path, str]]]


def disagreements(
    model: type[Model], value: Mapping[str, Any], wrong: Collection[Path], rule: Rule | None = None
) -> Iterator[tuple[Path, str]]:
    """Faults between the fields of `value`, a mapping for `model`. The fields at the `wrong` places are malformed.

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
    """The model with the well-formed fields only. Reading any other field raises NotKnown."""
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
