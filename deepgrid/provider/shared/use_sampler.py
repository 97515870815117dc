"""Samples what running jobs use, for their customers. Nothing waits for it, and no money depends on it.

One command per round asks for all jobs that are due, and one request sends their figures. A job is due 30 s after its
start, and then after longer and longer pauses. A site that does not answer is asked more and more rarely.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Self

from deepgrid.billing.use_samples import UseSample, merge_samples
from deepgrid.errors import GridError
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase, SlurmJob
from deepgrid.services.client import ServicesClient
from deepgrid.services.messages import MAX_USES_AT_ONCE
from deepgrid.slurm.observe.use_so_far import UseSoFar
from deepgrid.slurm.supervision.resource_uses import ResourceUses

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SamplingSettings:
    """Intervals and limits of the sampler."""

    poll_s: float = 5.0
    first_s: float = 30.0  # from a job's start to its first sample
    growth: float = 10.0  # then a pause is the job's run time so far by this
    longest_s: float = 600.0
    share: float = 20.0  # a round takes at most a twentieth of the time
    at_once: int = MAX_USES_AT_ONCE  # jobs per round

    def pause_s(self, run_s: float, misses: int) -> float:
        """Return the seconds until the next sample of a job that ran for `run_s`, after this many failed samples."""
        return float(min(self.longest_s, max(self.first_s, run_s / self.growth) * 2 ** min(misses, 10)))


@dataclass
class _Run:
    run: tuple[int | None, int | None]  # its Slurm id and start
    due_s: float  # of its run time
    use: UseSoFar = field(default_factory=UseSoFar)
    misses: int = 0
    last: UseSample | None = None


class UseSampler:
    """One loop for all jobs of a supervisor. `carried` gives the state of each, `clock` the cluster's unix time."""

    def __init__(
        self,
        uses: ResourceUses,
        services: ServicesClient,
        carried: Callable[[], Mapping[JobKey, SlurmJob]],
        clock: Callable[[], int],
        settings: SamplingSettings = SamplingSettings(),
    ) -> None:
        self._uses = uses
        self._services = services
        self._carried = carried
        self._clock = clock
        self._settings = settings
        self._runs: dict[JobKey, _Run] = {}
        self._loop: asyncio.Task[None] | None = None

    def last(self, key: JobKey) -> UseSample | None:
        """Return the last sample of a claim that is carried, with the peaks of all; None if there was none."""
        run = self._runs.get(key)
        return run.last if run else None

    async def __aenter__(self) -> Self:
        self._loop = asyncio.create_task(self._sample_for_ever(), name="use-sampler")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.gather(self._loop, return_exceptions=True)

    async def _sample_for_ever(self) -> None:
        pause_s = self._settings.poll_s
        while True:
            await asyncio.sleep(pause_s)
            began = time.monotonic()
            try:
                await self.sample()
            except GridError as error:
                logger.debug("the use of running jobs is not known: %s", error.message)
            except Exception:  # a bug must not end the samples of all jobs
                logger.exception("the use of running jobs is not known: unexpected error")
            pause_s = max(self._settings.poll_s, self._settings.share * (time.monotonic() - began))

    async def sample(self) -> None:
        """Run one round. Raises GridError while the login node or the services do not answer."""
        due = self._due()
        if not due:
            return
        for key, (_, run_s) in due.items():  # a job without an answer is asked later, so it holds up no other
            run = self._runs[key]
            run.misses += 1
            run.due_s = run_s + self._settings.pause_s(run_s, run.misses)
        found = await self._uses.running([job.slurm_id or 0 for job, _ in due.values()])
        samples: dict[JobKey, UseSample] = {}
        for key, (job, run_s) in due.items():
            if steps := found.get(job.slurm_id or 0):
                run = self._runs[key]
                run.misses = 0
                run.due_s = run_s + self._settings.pause_s(run_s, 0)
                samples[key] = sample = run.use.add(steps, run_s)
                run.last = merge_samples(run.last, sample) if run.last else sample
        if samples:
            await self._services.send_uses(samples)

    def _due(self) -> dict[JobKey, tuple[SlurmJob, int]]:
        """Return the running jobs whose next sample is due, and for how long they run. Forgets other jobs."""
        carried, now, due = self._carried(), self._clock(), dict[JobKey, tuple[SlurmJob, int]]()
        self._runs = {key: run for key, run in self._runs.items() if key in carried}
        for key, job in carried.items():
            if job.phase is not Phase.RUNNING or not job.slurm_id or job.started_at is None:
                continue
            run = self._runs.get(key)
            if run is None or run.run != (job.slurm_id, job.started_at):
                run = self._runs[key] = _Run((job.slurm_id, job.started_at), self._settings.first_s)
            run_s = now - job.started_at
            if run_s >= run.due_s:
                due[key] = job, run_s
        overdue = sorted(due, key=lambda key: self._runs[key].due_s - due[key][1])
        return {key: due[key] for key in overdue[: self._settings.at_once]}
