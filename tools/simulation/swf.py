"""Traces in the Standard Workload Format of the Parallel Workloads Archive.

A line has 18 numbers, and -1 stands for an unknown one. Lines that begin with `;` are comments. The format knows
processors, but neither tasks nor GPUs: `Shapes` says how processors are divided.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.simulation.workloads import TraceJob, number_jobs

FIELDS = 18
PARTIAL = (2, 3, 4)  # statuses of lines that describe a part of a job; another line describes the whole job
HEADER = """\
; Version: 2.2
; Computer: simulated, see tools/simulation/workloads.py
; MaxJobs: {jobs}
; MaxRecords: {jobs}
; Partitions: 1 without GPUs, 2 with one GPU per 4 processors
; Note: jobs of up to 8 processors are one task, multiples of 8 are tasks of 8
"""


@dataclass(frozen=True, slots=True)
class Shapes:
    """How processors become tasks and GPUs.

    Jobs of up to `task_cpus` processors are one task. Larger jobs are tasks of `task_cpus`, or of one processor
    where that is no multiple. In `gpu_partitions` each task has `cpus_per_gpu` processors and one GPU.
    `mem_per_cpu_mb` applies where a line does not give the memory.
    """

    task_cpus: int = 8
    gpu_partitions: frozenset[int] = frozenset({2})
    cpus_per_gpu: int = 4
    mem_per_cpu_mb: int = 1024

    def divide(self, processors: int, partition: int) -> tuple[int, int, int]:
        """Return tasks, CPUs per task and GPUs."""
        if partition in self.gpu_partitions:
            gpus = -(-processors // self.cpus_per_gpu)
            return gpus, self.cpus_per_gpu, gpus
        if processors <= self.task_cpus:
            return 1, processors, 0
        if processors % self.task_cpus == 0:
            return processors // self.task_cpus, self.task_cpus, 0
        return processors, 1, 0


@dataclass(slots=True)
class Trace:
    """The jobs of a file, and the number of lines without a job that ran."""

    jobs: list[TraceJob] = field(default_factory=list)
    skipped: int = 0


def read(path: Path, shapes: Shapes | None = None) -> Trace:
    """Read a trace, compressed if its name ends with `.gz`.

    Raises:
        ValueError: A line has fewer than 18 fields, or a field that is not a number.
    """
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return parse(text.decode("utf-8", errors="replace").splitlines(), shapes)


def parse(lines: Iterable[str], shapes: Shapes | None = None) -> Trace:
    """Return the jobs of these lines, as `read` does."""
    trace = Trace()
    for number, line in enumerate(lines, 1):
        line = line.strip()
        if line and not line.startswith(";"):
            job = _job(_numbers(line, number), shapes or Shapes())
            if job is None:
                trace.skipped += 1
            else:
                trace.jobs.append(job)
    trace.jobs = number_jobs(trace.jobs)
    return trace


def _numbers(line: str, number: int) -> list[int]:
    words = line.split()
    if len(words) < FIELDS:
        raise ValueError(f"Line {number} of the trace has {len(words)} fields instead of {FIELDS}.")
    try:
        return [int(float(word)) for word in words[:FIELDS]]
    except (ValueError, OverflowError):
        raise ValueError(f"Line {number} of the trace has a field that is not a number.") from None


def _job(fields: Sequence[int], shapes: Shapes) -> TraceJob | None:
    """Return the job of a line; None if it did not run, or is only a part of a job."""
    submitted, run, allocated, requested = fields[1], fields[3], fields[4], fields[7]
    processors = requested if requested > 0 else allocated
    if submitted < 0 or run < 0 or processors < 1 or fields[10] in PARTIAL:
        return None
    ntasks, cpus_per_task, gpus = shapes.divide(processors, fields[15])
    mem_mb = -(-fields[9] // 1024) if fields[9] > 0 else shapes.mem_per_cpu_mb
    run_s = max(1, run)
    return TraceJob(
        number=fields[0],
        customer=f"customer-{fields[11]:02}",
        submitted_s=submitted,
        run_s=run_s,
        requested_s=fields[8] if fields[8] > 0 else run_s,
        ntasks=ntasks,
        cpus_per_task=cpus_per_task,
        mem_per_cpu_mb=mem_mb,
        gpus=gpus,
    )


def write(path: Path, jobs: Sequence[TraceJob]) -> None:
    """Write a compressed trace of generated jobs. The same jobs give the same bytes."""
    text = HEADER.format(jobs=len(jobs)) + "".join(f"{line}\n" for line in _lines(jobs))
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def _lines(jobs: Sequence[TraceJob]) -> Iterator[str]:
    for job in jobs:
        user, partition = int(job.customer.rpartition("-")[2]), 2 if job.gpus else 1
        fields = (
            job.number, job.submitted_s, -1, job.run_s, job.cpus, -1, -1, job.cpus, job.requested_s,
            1024 * job.mem_per_cpu_mb, 1, user, 1, -1, 1, partition, -1, -1,
        )  # fmt: skip
        yield " ".join(map(str, fields))
