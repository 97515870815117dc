"""`sacct` and `sstat`: what the steps of jobs used, on record and while they run."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import ClassVar

from deepgrid.billing.resource_use import Measured
from deepgrid.slurm.commands.query import COMMAND_PREFIX, columns, is_id, seconds, utc
from deepgrid.slurm.commands.tres import USAGE_FIELDS, StepUse, megabytes, milliseconds, step_use

Steps = dict[str, StepUse]  # by the step's name: `batch`, `0`
Run = tuple[int, int | None]  # a Slurm id with the start of its run: Slurm reuses ids

_FIELDS = f"JobIDRaw,Start,End,TotalCPU,{USAGE_FIELDS}"
_SHORT_S = 1  # a step that ends before the first sample


@dataclass(frozen=True, slots=True)
class _Step:
    started_at: int
    ended_at: int
    cpu_ms: int
    use: StepUse


@dataclass(slots=True)
class _Record:
    run: Run
    ended: bool
    steps: list[_Step] = field(default_factory=list)
    complete: bool = True


@dataclass(frozen=True, slots=True)
class SacctUse:
    """What the jobs with these ids used, of those that existed since a time in unix seconds.

    No text of a customer is asked for. The rows of its steps follow the row of a job.
    """

    program: ClassVar[str] = "sacct"
    since: int
    ids: Sequence[int]

    def argv(self) -> list[str]:
        """Return the command line."""
        jobs = ",".join(map(str, self.ids))
        options = ["-n", "-P", "-a", "-D", "--noconvert", "-S", utc(self.since), "-j", jobs]
        return [*COMMAND_PREFIX, "sacct", *options, "-o", _FIELDS]

    @staticmethod
    def parse(text: str) -> dict[Run, Measured]:
        """Return the use of each run that is on record to its end, with all its steps."""
        records: list[_Record] = []
        for name, start, end, cpu, read, written in columns(text, 6, numeric=False):
            job, _, step = name.partition(".")
            if not is_id(job):
                continue
            started_at, ended_at = seconds(start), seconds(end)
            if not step:
                records.append(_Record((int(job), started_at), ended_at is not None))
            elif records and records[-1].run[0] == int(job):
                if started_at is None or ended_at is None:
                    records[-1].complete = False
                else:
                    records[-1].steps.append(_step(started_at, ended_at, cpu, step_use(read, written)))
        done = [one for one in records if one.ended and one.complete and one.steps]
        return {one.run: _use_of_steps(one.steps) for one in done}


@dataclass(frozen=True, slots=True)
class Sstat:
    """What the running steps of the jobs with these ids have used until now. Nodes take the sample when they are asked.

    Slurm answers root, its own account, and the account of the job. It leaves out all other jobs, jobs that do not run,
    and steps that have ended. It complains about such a job, and still prints the rows of the others.
    """

    program: ClassVar[str] = "sstat"
    ids: Sequence[int]

    def argv(self) -> list[str]:
        """Return the command line. Without `-a`, only one step of each job is printed."""
        jobs = ",".join(map(str, self.ids))
        return [*COMMAND_PREFIX, "sstat", "-a", "-n", "-P", "--noconvert", "-j", jobs, "-o", f"JobID,{USAGE_FIELDS}"]

    @staticmethod
    def parse(text: str) -> dict[int, Steps]:
        """Return the steps of each job that has any. The step `extern`, which holds no work, is left out."""
        found = defaultdict[int, Steps](dict)
        for name, taken, given in columns(text, 3, numeric=False):
            step = re.fullmatch(r"([0-9]{1,10})\.([a-z0-9+]{1,20})", name, re.ASCII)
            if step and step[2] != "extern":
                found[int(step[1])][step[2]] = step_use(taken, given)
        return dict(found)


def _step(started_at: int, ended_at: int, cpu: str, use: StepUse) -> _Step:
    used = max(milliseconds(cpu) or 0, use.cpu_ms)  # of a step that was killed, one of them may be missing
    return _Step(started_at, ended_at, used, use)


def _use_of_steps(steps: Sequence[_Step]) -> Measured:
    """Return the use of a run. A figure that a longer step lacks is not known."""
    cpu_ms = sum(step.cpu_ms for step in steps)
    longer = [step for step in steps if step.ended_at - step.started_at > _SHORT_S]
    sampled = bool(longer) and all(step.use.memory for step in longer)
    gpu_memory = _peak(steps, lambda use: use.gpu_memory)
    return Measured(
        cpu_s=round(cpu_ms / 1000) if cpu_ms else None,  # no process uses none: nothing is gathered
        memory_mb=megabytes(_peak(steps, lambda use: use.memory)) if sampled else None,
        read_mb=megabytes(sum(step.use.read or 0 for step in steps)) if sampled else None,
        written_mb=megabytes(sum(step.use.written or 0 for step in steps)) if sampled else None,
        gpu_percent=_peak(steps, lambda use: use.gpu_percent) if gpu_memory else None,
        gpu_memory_mb=megabytes(gpu_memory) if gpu_memory else None,
    )


def _peak(steps: Sequence[_Step], figure: Callable[[StepUse], int | None]) -> int:
    """Return the most that steps held at the same time. Each counts with its own peak."""
    moments: list[tuple[int, int]] = []
    for step in steps:
        held, until = figure(step.use) or 0, max(step.ended_at, step.started_at + 1)
        moments += [(step.started_at, held), (until, -held)]
    return max(accumulate(change for _, change in sorted(moments)))  # at one moment, ends come first
