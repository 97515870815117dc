"""Flattens a job's steps into shell functions, inner ones first. Each is named by its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deepgrid.errors import InputError
from deepgrid.sbatch.quoting import Quoted
from deepgrid.workflow.faults import dotted
from deepgrid.workflow.models import Definition, Step
from deepgrid.workflow.yaml_nodes import Path


@dataclass(frozen=True, slots=True)
class Block:
    """One step: the name of its function, its place in the file, and the functions of its inner steps."""

    name: Quoted
    place: Quoted
    step: Step
    inner: tuple[Quoted, ...]
    catch: tuple[Quoted, ...]
    finally_: tuple[Quoted, ...]

    @property
    def guarded(self) -> bool:
        """Whether the step has `catch` or `finally`."""
        return bool(self.catch or self.finally_)

    @property
    def handles(self) -> Quoted:
        return Quoted(" ".join(handle.upper() for handle in self.step.depends_on))

    @property
    def handle(self) -> Quoted:
        name = self.step.launch.handle_name if self.step.launch else None
        return Quoted(name.upper() if name else "''")


def blocks_of(job: Definition) -> tuple[list[Block], tuple[Quoted, ...]]:
    """All steps of a job, and the functions that the job calls, in order.

    Raises InputError for a module that was not resolved.
    """
    blocks = list(_blocks(job.steps, ("steps",), "step"))
    return blocks, _names(job.steps, "step")


def _blocks(steps: Sequence[Step], path: Path, prefix: str) -> Iterator[Block]:
    for number, step in enumerate(steps, 1):
        name, place = f"{prefix}_{number}", (*path, number - 1)
        if step.use:
            raise InputError(f"{dotted(place)}.use: the module is not resolved")
        inner, where = _inner(step)
        yield from _blocks(inner, (*place, *where), name)
        yield from _blocks(step.catch, (*place, "catch"), f"{name}_catch")
        yield from _blocks(step.finally_, (*place, "finally"), f"{name}_finally")
        yield Block(
            Quoted(name), Quoted(dotted(place)), step,
            _names(inner, name), _names(step.catch, f"{name}_catch"), _names(step.finally_, f"{name}_finally"),
        )  # fmt: skip


def _inner(step: Step) -> tuple[Sequence[Step], tuple[str, ...]]:
    if step.for_:
        return step.for_.steps, ("for", "steps")
    if step.launch:
        return step.launch.steps, ("launch", "steps")
    if step.module:
        return step.module.steps, ("module", "steps")
    return step.steps, ("steps",)


def _names(steps: Sequence[Step], prefix: str) -> tuple[Quoted, ...]:
    return tuple(Quoted(f"{prefix}_{number}") for number in range(1, len(steps) + 1))
