"""Reads the truth about one claim: its job on chain, its job at Slurm, and what the carrier knows of its own steps."""

from __future__ import annotations

import asyncio
import logging
import random
import time

from deepgrid.chain.client import Chain
from deepgrid.errors import ChainError, GridError, NotFound
from deepgrid.lifecycle.decide import Attempt, Observation
from deepgrid.lifecycle.ends import FAILED_LAUNCH, may_be_failed_launch
from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.lifecycle.pending_reasons import Outlook, pending_reason
from deepgrid.lifecycle.slurm_state import UNKNOWN, Phase, SlurmJob
from deepgrid.lifecycle.states import JobStatus
from deepgrid.provider.session import ProviderSession

logger = logging.getLogger(__name__)

DAY_S = 86400
LIMIT_RETRY_S = 60.0  # between submissions at a limit of submitted jobs
RECENT_JOBS = 1000  # of the customer


class ClaimObserver:
    """Observes one claim. The steps note here what only they know."""

    def __init__(self, session: ProviderSession, key: JobKey) -> None:
        self.session = session
        self.key = key
        self.attempt: Attempt | None = None
        self.limit_minutes: int | None = None
        self.limit_is_final = False
        self.ships_output: bool | None = None  # None when another carrier submitted the job
        self.seen: SlurmJob = UNKNOWN
        self._absent_since: float | None = None  # by time.monotonic()
        self._pending: tuple[Outlook, float] | None = None  # of a waiting job, and since when, by time.monotonic()
        self._limited_since: float | None = None  # by time.monotonic()
        self._retry_at = 0.0  # by time.monotonic()
        self._launch_failures: int | None = None  # read when it first matters

    async def observe(self) -> Observation:
        """Read the job on chain and the claim at Slurm. While the chain's node is down, retry until it answers."""
        pause_s = 1.0
        while True:
            try:
                seen = await self._observe_once()
                self.session.unobserved.end()
                return seen
            except GridError as error:
                if not error.transient:
                    raise
                self.session.unobserved.note(f"job {self.key.job_id}: {error.message}")
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))
            pause_s = min(2 * pause_s, self.session.intervals.observe_again_s)

    async def _read_job(self) -> Job:
        """Read the claim's job. Raises NotFound for an unknown job, once no reorganisation can bring it back."""
        try:
            return await self.session.job_of(self.key)
        except NotFound:
            stable_at = self.key.claimed_at + self.session.settings.claim_stays_s
            if (await self.session.chain.head()).timestamp > stable_at:
                raise
            raise ChainError(f"The chain's node does not know job {self.key.job_id} yet.") from None

    async def _observe_once(self) -> Observation:
        job = await self._read_job()
        self.seen = await self.session.monitor.changed(
            self.key, UNKNOWN, timeout_s=self.session.intervals.slurm_answers_s
        )
        now = time.monotonic()
        if self.attempt is not None and self.attempt.limited and now >= self._retry_at:
            self.attempt = None
        if self.seen.phase is not Phase.ABSENT:
            self._absent_since = None
        elif self._absent_since is None:
            self._absent_since = now
        if self.seen.phase in (Phase.RUNNING, Phase.ENDED) and self.ships_output is not False:
            self.session.logs.follow(self.key)
        if self._launch_failures is None and may_be_failed_launch(self.seen):
            self._launch_failures = await launch_failures(self.session.chain, job)
        absent_s = None if self._absent_since is None else now - self._absent_since
        return Observation(
            self.key, self.session.address, job, self.seen, self.session.monitor.cluster_now(), self.attempt,
            absent_s=absent_s, limit_minutes=self.limit_minutes, limit_is_final=self.limit_is_final,
            launch_failures=self._launch_failures or 0, pending_s=self._pending_s(now),
            patience=self.session.patience,
        )  # fmt: skip

    def _pending_s(self, now: float) -> float:
        """Return for how long Slurm's reason for which the job waits has had its outlook. Logs a bad reason once."""
        if self._limited_since is not None and self.seen.phase is Phase.ABSENT:
            return now - self._limited_since
        if self.seen.phase is not Phase.QUEUED:
            self._pending = None
            return 0.0
        text = self.seen.reason
        reason = pending_reason(text)
        if self._pending is None or self._pending[0] is not reason.outlook:
            self._pending = reason.outlook, now
        if reason.outlook is not Outlook.PASSES and text not in self.session.reported_reasons:
            self.session.reported_reasons.add(text)
            job_id, outlook, advice = self.key.job_id, reason.outlook.value, reason.provider
            logger.warning("job %d waits in Slurm: reason=%s: %s. %s", job_id, text, outlook, advice)
        return now - self._pending[1]

    def note_limit(self, limit: str) -> None:
        """Note that Slurm accepts no other job of the account now. After a while the job is submitted again."""
        self.session.claim_room.full(self.key, limit)
        now = time.monotonic()
        self._limited_since = self._limited_since or now
        self._retry_at = now + LIMIT_RETRY_S
        self.attempt = Attempt(limited=True)

    def note_submission(self) -> None:
        """Note that Slurm has the job: observations before the submission do not prove its absence."""
        self.session.claim_room.accepted()
        self.attempt = Attempt()
        self._limited_since = None
        self._absent_since = None

    async def until_placed(self) -> None:
        """Return once Slurm has started the job or given a reason why it waits.

        On a cluster with free nodes this is too short for a task of its own.
        """
        deadline = time.monotonic() + self.session.intervals.slurm_answers_s
        seen = self.seen
        while not seen.placed and (left_s := deadline - time.monotonic()) > 0:
            seen = await self.session.monitor.changed(self.key, seen, timeout_s=left_s)

    async def until_slurm_changes(self) -> None:
        """Poll Slurm now. If the job is in the queue, return once its state changes."""
        self.session.monitor.look_now(self.key)
        if self.seen.phase in (Phase.QUEUED, Phase.RUNNING):
            self.seen = await self.session.monitor.changed(
                self.key, self.seen, timeout_s=self.session.intervals.observe_again_s
            )

    async def next_change(self) -> None:
        """Return at the next change on chain or at Slurm, or when it is time to observe again."""
        timeout_s = self.session.intervals.until_observing_s(time.monotonic())
        chain = asyncio.create_task(self.session.wakeups.wait(self.key.job_id, timeout_s))
        slurm = asyncio.create_task(self.session.monitor.changed(self.key, self.seen, timeout_s=timeout_s))
        try:
            await asyncio.wait({chain, slurm}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (chain, slurm):
                task.cancel()
            await asyncio.gather(chain, slurm, return_exceptions=True)


async def launch_failures(chain: Chain, job: Job) -> int:
    """Count other jobs of this customer that failed to launch at this provider on the last day, by chain time.

    The chain keeps the count, so a restart loses nothing.
    """
    ids = [other for other in await chain.jobs_by_customer(job.customer) if other != job.id]
    since = await chain.now() - DAY_S
    others = await chain.jobs(sorted(ids)[-RECENT_JOBS:])
    return sum(
        other.provider == job.provider
        and other.status is JobStatus.FAILED
        and other.last_error == FAILED_LAUNCH.error
        and other.ended_at >= since
        for other in others
    )
