"""What a job used over time: a bounded number of samples per run, and figures computed from them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from deepgrid.billing.resource_use import Measured, ResourceUse, resource_use

MOST_SAMPLES = 64  # per job; beyond that, the two closest samples are merged


@dataclass(frozen=True, slots=True)
class UseSample(Measured):
    """What a job had used `run_s` seconds after its start.

    CPU time and bytes are totals. Memory and GPUs are the highest figures since the previous sample.
    """

    run_s: int = 0


@dataclass(frozen=True, slots=True)
class UseHistory:
    """What a job used over time, as its provider's Slurm measured it while it ran.

    Attributes:
        asked_cpus: CPUs of all tasks.
        asked_memory_mb: MB of memory of all tasks.
        asked_gpus: GPUs of all tasks.
        samples: The samples, oldest first.
    """

    asked_cpus: int
    asked_memory_mb: int
    asked_gpus: int
    samples: tuple[UseSample, ...]

    @property
    def so_far(self) -> ResourceUse:
        """What the job had used at the last sample."""
        last = self.samples[-1] if self.samples else UseSample()
        memory_mb, gpu_percent, gpu_memory_mb = _peaks(self.samples)
        measured = Measured(last.cpu_s, memory_mb, last.read_mb, last.written_mb, gpu_percent, gpu_memory_mb)
        return resource_use(self.asked_cpus, self.asked_memory_mb, last.run_s, measured, self.asked_gpus)

    @property
    def cpus(self) -> list[float | None]:
        """Average CPUs in use between the previous sample and each sample; None if it is not known."""
        return [_rate(before, after) for before, after in pairwise((UseSample(cpu_s=0), *self.samples))]


def with_sample(samples: Sequence[UseSample], new: UseSample) -> tuple[UseSample, ...]:
    """Return the samples with a new one. A sample that is not later than the last one changes nothing."""
    if samples and new.run_s <= samples[-1].run_s:
        return tuple(samples)
    all_samples = [*samples, new]
    while len(all_samples) > MOST_SAMPLES:
        times = [sample.run_s for sample in all_samples]
        at = min(range(len(times) - 2), key=lambda i: times[i + 1] - (times[i - 1] if i else 0))
        all_samples[at : at + 2] = [merge_samples(all_samples[at], all_samples[at + 1])]
    return tuple(all_samples)


def merge_samples(earlier: UseSample, later: UseSample) -> UseSample:
    """Return the later sample with the peaks of both."""
    memory_mb, gpu_percent, gpu_memory_mb = _peaks((earlier, later))
    return replace(later, memory_mb=memory_mb, gpu_percent=gpu_percent, gpu_memory_mb=gpu_memory_mb)


def _peaks(samples: Sequence[UseSample]) -> tuple[int | None, int | None, int | None]:
    """Return the highest memory, GPU use and GPU memory."""
    figures = [(one.memory_mb, one.gpu_percent, one.gpu_memory_mb) for one in samples]
    memory, percent, gpu_memory = zip(*figures, strict=True) if figures else ((), (), ())
    return _highest(memory), _highest(percent), _highest(gpu_memory)


def _highest(figures: Sequence[int | None]) -> int | None:
    return max((figure for figure in figures if figure is not None), default=None)


def _rate(before: UseSample, after: UseSample) -> float | None:
    if before.cpu_s is None or after.cpu_s is None or after.run_s <= before.run_s:
        return None
    return max(0, after.cpu_s - before.cpu_s) / (after.run_s - before.run_s)
