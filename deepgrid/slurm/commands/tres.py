"""Slurm's trackable resources (TRES): what jobs got (`billing=1,cpu=4,gres/gpu=1,mem=400M,node=1`), and used."""

from __future__ import annotations

import re
from dataclasses import dataclass

from deepgrid.billing.entries import NOT_ACCOUNTED, Allocation

TRES_OF_GPUS = "gres/gpu="
USAGE_FIELDS = "TRESUsageInTot,TRESUsageOutTot"
_BYTES_PER_MB = 1024 * 1024
_MB = {"K": 1 / 1024, "M": 1, "": 1, "G": 1024, "T": 1024**2, "P": 1024**3}


def allocation(given: str, wanted: str, *, counts_gpus: bool) -> Allocation:
    """Return the resources that a job was given, from the texts of AllocTRES and ReqTRES.

    A site counts GPUs only if it lists them in AccountingStorageTRES. Where it does (`counts_gpus`), a job without an
    entry has no GPU. A job that got nothing has no allocation: it never started.
    """
    if not given:
        return NOT_ACCOUNTED
    have = _pairs(given)
    gpus = _count(have.get("gres/gpu"))
    return Allocation(
        cpus=_count(have.get("cpu")),
        nodes=_count(have.get("node")),
        mem_mb=_megabytes(have.get("mem")),
        gpus=0 if gpus is None and counts_gpus else gpus,
        wanted_nodes=_count(_pairs(wanted).get("node")),
    )


@dataclass(frozen=True, slots=True)
class StepUse:
    """The figures of one step, None for what Slurm does not know. Sizes are bytes.

    `gpu_percent` is the sum over GPUs: 150 are one and a half GPUs. Slurm samples it only where it manages GPUs by
    their vendor's library (`AutoDetect=nvml`). It prints 0, or a number above all, for a GPU that it cannot measure.
    """

    cpu_ms: int
    memory: int | None
    read: int | None
    written: int | None
    gpu_percent: int | None
    gpu_memory: int | None


def step_use(taken: str, given: str) -> StepUse:
    """Parse the two columns of `USAGE_FIELDS`. Without a sample, nothing but the CPU time is known."""
    read, written = _pairs(taken), _pairs(given)
    memory = _parse_integer(read.get("mem")) or None  # 0 means that no sample was taken
    disk = (_parse_integer(read.get("fs/disk")), _parse_integer(written.get("fs/disk"))) if memory else (None, None)
    gpu_memory = _parse_integer(read.get("gres/gpumem")) or None  # 0 also means that no process was on a GPU
    percent = _parse_integer(read.get("gres/gpuutil")) if gpu_memory else None
    return StepUse(milliseconds(read.get("cpu", "")) or 0, memory, *disk, percent, gpu_memory)


def megabytes(count: int) -> int:
    """Return a number of bytes in MB, rounded up."""
    return -(-count // _BYTES_PER_MB)


def milliseconds(text: str) -> int | None:
    """Return the milliseconds of Slurm's CPU time: `00:02.824`, `01:00:02`, `2-01:00:02`; None for another text."""
    found = re.fullmatch(r"(?:(?:([0-9]{1,6})-)?([0-9]{1,4}):)?([0-9]{1,4}):([0-9]{1,2})(?:\.([0-9]{3}))?", text)
    if not found:
        return None
    days, hours, minutes, whole, rest = (int(part or 0) for part in found.groups())
    return (((days * 24 + hours) * 60 + minutes) * 60 + whole) * 1000 + rest


def _pairs(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)


def _parse_integer(text: str | None) -> int | None:
    """Return a number of bytes or percents; None for other text, and for Slurm's number above all."""
    return int(text) if text is not None and re.fullmatch("[0-9]{1,18}", text) else None


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch("[0-9]{1,12}", text) else None


def _megabytes(text: str | None) -> int | None:
    found = re.fullmatch(r"([0-9]{1,12})([KMGTP]?)", text or "")
    return int(int(found[1]) * _MB[found[2]]) if found else None
