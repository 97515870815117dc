"""What a run has used so far, added up from samples of its running steps. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from deepgrid.billing.use_samples import UseSample
from deepgrid.slurm.commands.step_uses import Steps
from deepgrid.slurm.commands.tres import StepUse, megabytes


class UseSoFar:
    """Slurm forgets a step that ends, so its last sample is kept. What it used after that is not known here."""

    def __init__(self) -> None:
        self._ended_cpu_ms = self._ended_read = self._ended_written = 0
        self._running: Steps = {}

    def add(self, steps: Steps, run_s: int) -> UseSample:
        """Add a sample of the running steps, `run_s` seconds after the start. Returns the use of the whole run."""
        for name, step in self._running.items():
            if name not in steps:
                self._ended_cpu_ms += step.cpu_ms
                self._ended_read += step.read or 0
                self._ended_written += step.written or 0
        self._running = steps
        now = list(steps.values())
        is_sampled = any(step.memory for step in now)
        return UseSample(
            cpu_s=round((self._ended_cpu_ms + sum(step.cpu_ms for step in now)) / 1000) if is_sampled else None,
            memory_mb=_sum(step.memory for step in now),
            read_mb=megabytes(self._ended_read + sum(step.read or 0 for step in now)) if is_sampled else None,
            written_mb=megabytes(self._ended_written + sum(step.written or 0 for step in now)) if is_sampled else None,
            gpu_percent=_percent(now),
            gpu_memory_mb=_sum(step.gpu_memory for step in now),
            run_s=run_s,
        )


def _sum(sizes: Iterable[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return megabytes(sum(known)) if known else None


def _percent(steps: Iterable[StepUse]) -> int | None:
    known = [step.gpu_percent for step in steps if step.gpu_percent is not None]
    return sum(known) if known else None
