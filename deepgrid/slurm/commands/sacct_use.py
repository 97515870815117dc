"""`sacct`: what jobs used, from the records of their steps."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import ClassVar

from deepgrid.billing.resource_use import Measured
from deepgrid.slurm.commands.query import COMMAND_PREFIX, columns, is_id, seconds, utc

Run = tuple[int, int | None]  # a Slurm id with the start of its run: Slurm reuses ids

_FIELDS = "JobIDRaw,Start,End,TotalCPU,TRESUsageInTot,TRESUsageOutTot"
_MB = 1024 * 1024
_SHORT_S = 1  # a step that ends before the first sample


@dataclass(frozen=True, slots=True)
class _Step:
    started_at: int
    ended_at: int
    cpu_ms: int
    memory: int | None  # bytes
    read: int | None
    written: int | None


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
                    records[-1].steps.append(_step(started_at, ended_at, cpu, _pairs(read), _pairs(written)))
        done = [one for one in records if one.ended and one.complete and one.steps]
        return {one.run: _measured(one.steps) for one in done}


def _step(started_at: int, ended_at: int, cpu: str, read: Mapping[str, str], written: Mapping[str, str]) -> _Step:
    sampled = _milliseconds(read.get("cpu", "")) or 0
    used = max(_milliseconds(cpu) or 0, sampled)  # of a step that was killed, one of them may be missing
    memory = _count(read.get("mem")) or None  # 0 means that no sample was taken
    disk = (_count(read.get("fs/disk")), _count(written.get("fs/disk"))) if memory else (None, None)
    return _Step(started_at, ended_at, used, memory, *disk)


def _measured(steps: Sequence[_Step]) -> Measured:
    """Return the use of a run. A figure that a longer step lacks is not known."""
    cpu_ms = sum(step.cpu_ms for step in steps)
    longer = [step for step in steps if step.ended_at - step.started_at > _SHORT_S]
    sampled = bool(longer) and all(step.memory for step in longer)
    return Measured(
        cpu_s=round(cpu_ms / 1000) if cpu_ms else None,  # no process uses none: nothing is gathered
        memory_mb=_megabytes(_peak(steps)) if sampled else None,
        read_mb=_megabytes(sum(step.read or 0 for step in steps)) if sampled else None,
        written_mb=_megabytes(sum(step.written or 0 for step in steps)) if sampled else None,
    )


def _peak(steps: Sequence[_Step]) -> int:
    """Return the most memory that steps held at the same time, in bytes. Each counts with its own peak."""
    moments: list[tuple[int, int]] = []
    for step in steps:
        held, until = step.memory or 0, max(step.ended_at, step.started_at + 1)
        moments += [(step.started_at, held), (until, -held)]
    return max(accumulate(change for _, change in sorted(moments)))  # at one moment, ends come first


def _pairs(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch("[0-9]{1,18}", text) else None


def _megabytes(count: int) -> int:
    return -(-count // _MB)


def _milliseconds(text: str) -> int | None:
    """Return the milliseconds of Slurm's CPU time: `00:02.824`, `01:00:02`, `2-01:00:02`; None for another text."""
    found = re.fullmatch(r"(?:(?:([0-9]{1,6})-)?([0-9]{1,4}):)?([0-9]{1,4}):([0-9]{1,2})(?:\.([0-9]{3}))?", text)
    if not found:
        return None
    days, hours, minutes, whole, rest = (int(part or 0) for part in found.groups())
    return (((days * 24 + hours) * 60 + minutes) * 60 + whole) * 1000 + rest
