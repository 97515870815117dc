"""Follows the jobs of one provider. Activity elsewhere in the grid costs nothing.

The contract keeps a provider's queue and the list of its claimed jobs; no event names the provider of a change. So one
small request polls the length of the queue. The claimed jobs are read every few seconds, and at once when the queue
gets shorter. An idle provider costs less than one request per second. There is no cursor: each poll reads the current
state, so neither downtime nor a reorganisation loses a change.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from deepgrid.chain.client import Chain
from deepgrid.chain.node.node import Block
from deepgrid.condition_log import ConditionLog
from deepgrid.errors import ChainError, NotFound
from deepgrid.lifecycle.job import Job

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OwnJobsSettings:
    """Pauses in seconds: between two polls of the queue, and between two reads of the claimed jobs."""

    poll_s: float = 0.5
    sweep_s: float = 5.0
    idle_poll_s: float = 1.5  # while nothing is assigned or claimed
    idle_sweep_s: float = 30.0
    longest_pause_s: float = 15.0  # while the node does not answer


@dataclass(frozen=True, slots=True)
class OwnChange:
    """Claimed jobs that changed or ended, and the number of jobs that wait for a claim."""

    jobs: list[Job]
    claimable: int


class OwnJobs:
    """Follows the jobs of `provider` while `changes` is iterated."""

    def __init__(
        self,
        chain: Chain,
        provider: str,
        settings: OwnJobsSettings = OwnJobsSettings(),
        *,
        looked: Callable[[Block | None], None] = lambda _: None,
    ) -> None:
        """`looked` is called after each poll, with the head if the claimed jobs were read."""
        self._chain = chain
        self._provider = provider
        self._settings = settings
        self._looked = looked
        self._head: Block | None = None  # at the last poll
        self._claimed: dict[int, Job] = {}  # as last reported
        self._claimable = 0
        self._swept_at = -1e9

    async def changes(self) -> AsyncIterator[OwnChange]:
        """Yield changes, forever. The first one holds all claimed jobs and may be empty; later ones are not."""
        started, failures, silence = False, 0, ConditionLog(log, "cannot follow the chain")
        while True:
            try:
                change = await self._look()
            except (ChainError, NotFound) as error:  # NotFound: the chain was reset
                if isinstance(error, NotFound):
                    self._claimed = {}
                failures += 1
                silence.note(error)
                pause_s = min(self._settings.longest_pause_s, self._settings.poll_s * 2 ** min(failures, 10))
                await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))
                continue
            failures = 0
            silence.end()
            self._looked(self._head)
            if change is not None or not started:
                started = True
                yield change or OwnChange([], self._claimable)
            await asyncio.sleep(self._settings.poll_s if self._is_busy else self._settings.idle_poll_s)

    @property
    def _is_busy(self) -> bool:
        return bool(self._claimed or self._claimable)

    async def _look(self) -> OwnChange | None:
        """Return the change since the last poll, if any."""
        self._head = None
        before, self._claimable = self._claimable, await self._chain.claimable(self._provider)
        pause_s = self._settings.sweep_s if self._claimed else self._settings.idle_sweep_s
        is_due = asyncio.get_running_loop().time() - self._swept_at >= pause_s
        jobs = await self._sweep() if is_due or self._claimable < before else []
        return OwnChange(jobs, self._claimable) if jobs or self._claimable != before else None

    async def _sweep(self) -> list[Job]:
        """Read all jobs that are claimed now or were claimed at the last read. Returns the changed ones."""
        self._head = await self._chain.head()
        ids = {*self._claimed, *await self._chain.claimed_jobs(self._provider)}
        jobs = await self._chain.jobs(sorted(ids)) if ids else []
        changed = [job for job in jobs if self._claimed.get(job.id) != job]
        self._claimed = {job.id: job for job in jobs if job.status.claimed and job.provider == self._provider}
        self._swept_at = asyncio.get_running_loop().time()
        return changed
