"""What is allowed in a job definition and yet better said otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from deepgrid.workflow.base import Model
from deepgrid.workflow.nodes import Path
from deepgrid.workflow.steps import StepFor
from deepgrid.workflow.walk import models_in


def advice_on(job: Model) -> Iterator[tuple[Path, str]]:
    """Outdated fields that are used, and loops that never run, each with its place."""
    for place, model in models_in(job):
        yield from _outdated(place, model)
        if isinstance(model, StepFor) and model.items is None and model.range is None:
            yield place, "has neither items nor range, so it never runs"


def _outdated(place: Path, model: Model) -> Iterator[tuple[Path, str]]:
    for name, field in type(model).model_fields.items():
        instead = type(model).OUTDATED.get(field.alias or name)
        if instead and getattr(model, name) != field.default:
            yield (*place, field.alias or name), f"is outdated; use {instead}"
