"""Rules between the parts of a job definition, each fault with its place.

They are looked at when every field by itself is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from deepgrid.workflow.handles import misplaced_waits
from deepgrid.workflow.nodes import Path
from deepgrid.workflow.running import JobResources, StepRun
from deepgrid.workflow.steps import Step
from deepgrid.workflow.walk import steps_in

if TYPE_CHECKING:
    from deepgrid.workflow.job import Job

MOST_STEPS = 1000  # shellcheck takes 5 ms and half a MB a step
MOST_NESTED = 16  # each level is a shell inside a shell, and a call inside a call here
MOST_PARALLEL = 1000  # processes that one loop starts at once

MOST_SHOWN = 100  # of one kind of fault

Fault = tuple[Path, str]


def faults_in(job: Job) -> Iterator[Fault]:
    """Everything that does not go together in a job."""
    steps = list(steps_in(job.steps, ("steps",)))
    if len(steps) > MOST_STEPS:
        yield ("steps",), f"must not have more than {MOST_STEPS} steps in all, with those inside of steps"
    for place, step in steps:
        if _level(place) > MOST_NESTED:
            yield place, f"is nested deeper than {MOST_NESTED} steps"
        if step.run:
            yield from _oversized(step.run, job.resources, (*place, "run"))
        if step.for_ and step.for_.parallel and step.for_.iterations > MOST_PARALLEL:
            yield (*place, "for"), f"must not start more than {MOST_PARALLEL} iterations at once"
    yield from islice(misplaced_waits(job.steps, ("steps",)), MOST_SHOWN)
    yield from _networks(job, steps)
    yield from _unsupported(job, steps)


def _level(place: Path) -> int:
    return sum(isinstance(part, int) for part in place)


def _oversized(run: StepRun, job: JobResources, place: Path) -> Iterator[Fault]:
    """Where a step asks for more than the whole job."""
    wanted = run.resources_in(job)
    for what, need, limit in (
        ("CPUs", wanted.cpus, job.cpus),
        ("MB of memory", wanted.mem_mb, job.mem_mb),
        ("GPUs", wanted.gpus, job.gpus),
    ):
        if need > limit:
            yield (*place, "resources"), f"asks for {need} {what} in all, the job has {limit}"


def _networks(job: Job, steps: Sequence[tuple[Path, Step]]) -> Iterator[Fault]:
    """Networks have names of their own, and steps name networks that there are."""
    names: set[str] = set()
    for index, network in enumerate(job.virtual_networks):
        if network.name in names:
            yield ("virtualNetworks", index, "name"), "is the name of another network already"
        names.add(network.name)
    for place, step in steps:
        for index, interface in enumerate(step.run.custom_network_interfaces if step.run else ()):
            if interface.vnet and interface.vnet.name not in names:
                where = (*place, "run", "customNetworkInterfaces", index, "vnet", "name")
                yield where, "missing virtual network: virtualNetworks has no network of this name"


def _unsupported(job: Job, steps: Sequence[tuple[Path, Step]]) -> Iterator[Fault]:
    """What the language has and no renderer carries out yet."""
    used: list[tuple[Path, bool]] = [(("virtualNetworks",), bool(job.virtual_networks))]
    for place, step in steps:
        used.append(((*place, "use"), step.use is not None))
        if step.run:
            used.append(((*place, "run", "network"), step.run.network not in (None, "host")))
    for place, is_used in used:
        if is_used:
            yield place, "is not supported yet"
