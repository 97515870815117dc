"""Turns the input of an operation into the models of the workflow language, by the checks of workflow files.

`null` means absent at every depth.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from pydantic import ValidationError

from deepgrid.compat.graphql.fault_entries import FaultyInput, JobFault, fault_at
from deepgrid.errors import InputError
from deepgrid.workflow import Definition, canonical
from deepgrid.workflow.faults import MOST_SHOWN, Fault, all_faults
from deepgrid.workflow.models import Module
from deepgrid.workflow.models.base import Model
from deepgrid.workflow.models.rules.handles import misplaced_waits
from deepgrid.workflow.reading.fitting import fit
from deepgrid.workflow.yaml_text.yaml_nodes import Document, Path

M = TypeVar("M", bound=Model)


def definition_from(given: Any) -> Definition:
    """The job of an input. Raises FaultyInput."""
    job = _checked(Definition, given, "Job")
    try:
        canonical(job)  # refuses a definition too large to store
    except InputError as error:
        raise FaultyInput([JobFault(error.message, "max", "Job")]) from None
    return job


def module_from(given: Any) -> Module:
    """The module of an input. Raises FaultyInput. Rules that need the job are checked when a job uses the module."""
    module = _checked(Module, given, "Module")
    waits = [(path, what, False) for path, what in misplaced_waits(module.steps, ("steps",))]
    if waits:
        raise FaultyInput(_shown(waits, {}, "Module"))
    return module


def _checked(model: type[M], given: Any, root: str) -> M:
    """`given` as `model`, fitted and checked as the content of a file."""
    document, _warnings = fit(Document(value=_without_nulls(given)), model)
    try:
        return model.model_validate(document.value, by_alias=True, by_name=False)
    except ValidationError as error:
        kinds = {tuple(item["loc"]): item["type"] for item in error.errors(include_url=False, include_input=False)}
        raise FaultyInput(_shown(all_faults(error, model, document.value), kinds, root)) from None


def _shown(faults: Iterable[Fault], kinds: dict[Path, str], root: str) -> list[JobFault]:
    found = list(faults)
    shown = [fault_at(path, what, kinds.get(path, ""), root) for path, what, _ in found[:MOST_SHOWN]]
    more = len(found) - MOST_SHOWN
    return shown if more <= 0 else [*shown, JobFault(f"and {more} more faults", "rule", root)]


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(part) for name, part in value.items() if part is not None}
    return [_without_nulls(part) for part in value] if isinstance(value, list) else value
