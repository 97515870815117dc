"""Warnings about steps that wait for a launch because the job lacks the resources for both.

Slurm holds such a step back until the launch has ended. If the launch runs until its scope ends, the step never starts,
and the job ends when its credits are used up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deepgrid.workflow.models.running import JobResources, StepRun
from deepgrid.workflow.models.steps import Step
from deepgrid.workflow.models.walk import Fault, lists_in, steps_in
from deepgrid.workflow.yaml_nodes import Path

_Needs = tuple[int, int, int]  # CPUs, MB of memory, GPUs
_Launches = dict[Path, tuple[str | None, _Needs]]  # running launches: handle and needs, keyed by their places
_WHAT = ("CPUs", "MB of memory", "GPUs")


def held_steps(steps: Sequence[Step], path: Path, job: JobResources) -> Iterator[Fault]:
    """Yield the first step in each scope that a launch without `dependsOn` holds back."""
    yield from _in_scope(steps, path, job, {})


def _in_scope(steps: Sequence[Step], path: Path, job: JobResources, running: _Launches) -> Iterator[Fault]:
    for index, step in enumerate(steps):
        place = (*path, index)
        joined = {handle.upper() for handle in step.depends_on}
        for launch in [at for at, (handle, _) in running.items() if handle in joined]:
            del running[launch]
        if step.launch:
            yield from _in_scope(step.launch.steps, (*place, "launch", "steps"), job, {})
            handle = step.launch.handle_name
            running[place] = handle and handle.upper(), _most(step.launch.steps, job)
        elif step.run and (what := _too_much(step.run, job, running)):
            running.clear()
            yield (*place, "run"), what
        shares = not (step.catch or step.finally_ or (step.for_ and step.for_.parallel))
        for name, inner in lists_in(step) if not step.launch else ():
            is_same = shares and name in (("steps",), ("for", "steps"))
            yield from _in_scope(inner, (*place, *name), job, running if is_same else dict(running))


def _most(steps: Sequence[Step], job: JobResources) -> _Needs:
    """Return the largest needs of any single step, because steps run one after another."""
    needs = [_needs(step.run, job) for _, step in steps_in(steps, ()) if step.run]
    cpus, memory, gpus = (max(column) for column in zip((0, 0, 0), *needs, strict=True))
    return cpus, memory, gpus


def _needs(run: StepRun, job: JobResources) -> _Needs:
    wanted = run.resources_in(job)
    return wanted.cpus, wanted.mem_mb, wanted.gpus


def _too_much(run: StepRun, job: JobResources, running: _Launches) -> str:
    """Return a message if the launches and a step together need more than the job has; empty otherwise."""
    if not running:
        return ""
    together = map(sum, zip(_needs(run, job), *(needs for _, needs in running.values()), strict=True))
    for what, need, has in zip(_WHAT, together, (job.cpus, job.mem_mb, job.gpus), strict=True):
        if need > has:
            return (
                f"waits until a launch before it has ended: together they ask for {need} {what}, the job has {has};"
                " give them fewer resources, or wait with dependsOn"
            )
    return ""
