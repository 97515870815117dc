"""Iterates over the parts of a job definition. A place is a path of YAML names and list positions.

Malformed parts (see `partial`) are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from deepgrid.workflow.models.base import Model
from deepgrid.workflow.models.network import VirtualNetwork
from deepgrid.workflow.models.running import JobResources
from deepgrid.workflow.models.steps import Step
from deepgrid.workflow.yaml_nodes import Path

Fault = tuple[Path, str]  # a place, and what is wrong there


class JobParts(Protocol):
    """The parts of a job definition that the rules compare.

    `Definition` has these parts and calls the rules, so the rules cannot import it.
    """

    @property
    def resources(self) -> JobResources: ...

    @property
    def steps(self) -> tuple[Step, ...]: ...

    @property
    def virtual_networks(self) -> tuple[VirtualNetwork, ...]: ...


def steps_in(steps: Sequence[Step], path: Path) -> Iterator[tuple[Path, Step]]:
    """These steps and all steps inside them, in the order of the file."""
    for index, step in enumerate(steps):
        place = (*path, index)
        yield place, step
        for name, inner in lists_in(step):
            yield from steps_in(inner, (*place, *name))


def lists_in(step: Step) -> Iterator[tuple[Path, Sequence[Step]]]:
    """Yield the lists of steps directly inside a step, with their paths."""
    known = vars(step)
    yield ("steps",), known.get("steps", ())
    for name in ("for_", "launch", "use", "module"):
        if known.get(name) is not None:
            yield (name.rstrip("_"), "steps"), vars(known[name]).get("steps", ())
    yield ("catch",), known.get("catch", ())
    yield ("finally",), known.get("finally_", ())


def models_in(model: Model, path: Path = ()) -> Iterator[tuple[Path, Model]]:
    """Yield a model and all models inside it."""
    yield path, model
    for name, field in type(model).model_fields.items():
        value, place = vars(model).get(name), (*path, field.alias or name)
        if isinstance(value, Model):
            yield from models_in(value, place)
        elif isinstance(value, tuple):
            for index, item in enumerate(value):
                if isinstance(item, Model):
                    yield from models_in(item, (*place, index))
