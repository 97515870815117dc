"""Rules between the parts of a job definition. Each fault has its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from deepgrid.workflow.models.base import NotKnown
from deepgrid.workflow.models.rules.handles import misplaced_waits
from deepgrid.workflow.models.rules.interfaces import misplaced_interfaces, misplaced_networks
from deepgrid.workflow.models.rules.walk import Fault, JobParts, steps_in
from deepgrid.workflow.models.steps import Step
from deepgrid.workflow.yaml_text.yaml_nodes import Path

MOST_STEPS = 1000  # shellcheck takes 5 ms and half a MB per step
MOST_NESTED = 16  # each level is a nested shell, and a nested call in this code
MOST_PARALLEL = 1000  # processes that one loop starts at the same time

MOST_SHOWN = 100  # per kind of fault


def faults_in(job: JobParts) -> Iterator[Fault]:
    """All disagreements between the parts of a job. Malformed parts are skipped."""
    yield from _where_known(_too_many(job))
    yield from _where_known(misplaced_networks(job))
    yield from _where_known(_in_steps(job))


def faults_in_steps(steps: Sequence[Step], path: Path, job: JobParts, above: int = 0) -> Iterator[Fault]:
    """The same for steps at `path` in this job, nested `above` levels deep."""
    for place, step in steps_in(steps, path):
        if level(place) + above > MOST_NESTED:
            yield place, f"is nested deeper than {MOST_NESTED} steps"
        for rule in (_oversized, _too_parallel, misplaced_interfaces):
            yield from _where_known(rule(step, job, place))
    yield from _where_known(islice(misplaced_waits(steps, path), MOST_SHOWN))


def _where_known(rule: Iterable[Fault]) -> Iterator[Fault]:
    """The findings of a rule, until it reads a malformed part."""
    try:
        yield from rule
    except NotKnown:
        return


def _too_many(job: JobParts) -> Iterator[Fault]:
    if sum(1 for _ in steps_in(job.steps, ("steps",))) > MOST_STEPS:
        yield ("steps",), f"must not have more than {MOST_STEPS} steps in all, with those inside of steps"


def _in_steps(job: JobParts) -> Iterator[Fault]:
    yield from faults_in_steps(job.steps, ("steps",), job)


def level(place: Path) -> int:
    """The nesting level of a place, in steps."""
    return sum(isinstance(part, int) for part in place)


def _oversized(step: Step, job: JobParts, place: Path) -> Iterator[Fault]:
    """Resources of a step that exceed those of the whole job."""
    if not step.run:
        return
    wanted, has = step.run.resources_in(job.resources), job.resources
    for what, need, limit in (
        ("CPUs", wanted.cpus, has.cpus),
        ("MB of memory", wanted.mem_mb, has.mem_mb),
        ("GPUs", wanted.gpus, has.gpus),
    ):
        if need > limit:
            yield (*place, "run", "resources"), f"asks for {need} {what} in all, the job has {limit}"


def _too_parallel(step: Step, _job: JobParts, place: Path) -> Iterator[Fault]:
    if step.for_ and step.for_.parallel and step.for_.iterations > MOST_PARALLEL:
        yield (*place, "for"), f"must not start more than {MOST_PARALLEL} iterations at once"
