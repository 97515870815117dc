"""A carrier drives one claim at the provider: it observes, and it does the single steps.

Each step looks up whether it was done before it does it, so that two carriers, or one that
was killed half-way, do nothing twice.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from deepgrid.errors import AccessDenied, ContractError, GridError, InputError, NotFound, SlurmError
from deepgrid.lifecycle.actions import (
    Action,
    Awaited,
    CancelAtSlurm,
    ExtendLimit,
    Refuse,
    ReportRunning,
    Settle,
    Submit,
    Wait,
)
from deepgrid.lifecycle.decide import LAUNCH_FAILURES, Attempt, Observation, decide
from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.lifecycle.slurm_state import UNKNOWN, Phase, SlurmJob
from deepgrid.provider.launch_failures import launch_failures
from deepgrid.provider.session import ProviderSession
from deepgrid.provider.steering import extend_limit
from deepgrid.provider.terms import why_unacceptable
from deepgrid.sbatch import render
from deepgrid.services.script_check import check_grammar
from deepgrid.slurm.submit.protocol import SubmitRequest
from deepgrid.workflow import verify_resources

logger = logging.getLogger(__name__)

LOOK_AGAIN_S = 30.0
BLOCK_S = 1.0  # between looks for another block
PROMPT_S = 2.0  # within which a cluster that is well has answered
# The contract's own words for "somebody was here before": nothing is left to do for this step.
OVERTAKEN = frozenset(
    {"JobHotStatusOnly", "SameStatusError", "InvalidTransition", "JobProviderOnly", "MetaScheduledScheduledStatusOnly"}
)
Call = Callable[..., Awaitable[Any]]


async def plainly(step: Call, *arguments: object) -> Any:
    """Call a step of a carrier as it is: with the carrier and the step's arguments."""
    return await step(*arguments)


class Carrier:
    """The steps of one claim. See `carry`."""

    def __init__(self, session: ProviderSession, key: JobKey) -> None:
        self.session = session
        self.key = key
        self._attempt: Attempt | None = None
        self._absent_since: float | None = None  # by time.monotonic()
        self._limit_minutes: int | None = None
        self._limit_is_final = False
        self._seen: SlurmJob = UNKNOWN
        self._ships_output: bool | None = None  # None when another carrier submitted the job
        self._launch_failures: int | None = None  # asked for once it matters

    @property
    def job_id(self) -> int:
        return self.key.job_id

    @property
    def cluster(self) -> str:
        """Name of the cluster that runs the job."""
        return self.session.settings.cluster

    async def observe(self) -> Observation:
        """Read the truth: the job on chain, the claim at Slurm. A node that is away is waited for."""
        pause_s = 1.0
        while True:
            try:
                return await self._look()
            except GridError as error:
                if not error.transient and not isinstance(error, NotFound):  # the chain went back, to come again
                    raise
                logger.warning("job %d: looking again in %.0f s: %s", self.key.job_id, pause_s, error.message)
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))
            pause_s = min(2 * pause_s, LOOK_AGAIN_S)

    async def _look(self) -> Observation:
        job = await self.session.job_of(self.key)
        self._seen = await self.session.monitor.changed(self.key, UNKNOWN, timeout_s=PROMPT_S)
        now = time.monotonic()
        if self._seen.phase is not Phase.ABSENT:
            self._absent_since = None
        elif self._absent_since is None:
            self._absent_since = now
        if self._seen.phase in (Phase.RUNNING, Phase.ENDED) and self._ships_output is not False:
            self.session.logs.follow(self.key)
        if self._launch_failures is None and self._seen.reason in LAUNCH_FAILURES:
            self._launch_failures = await launch_failures(self.session.chain, job)
        return Observation(
            self.key, self.session.address, job, self._seen, self.session.monitor.cluster_now(), self._attempt,
            None if self._absent_since is None else now - self._absent_since, self._limit_minutes, self._limit_is_final,
            launch_failures=self._launch_failures or 0,
        )  # fmt: skip

    async def act(self, action: Action, call: Call = plainly) -> None:
        """Do what `decide` said, step by step through `call`, which gets a method of this class and its arguments."""
        match action:
            case Submit():
                script = await call(Carrier.fetch_script, self)
                if script is not None:
                    await call(Carrier.submit, self, script)
            case Wait(awaited):
                await call(Carrier.wait, self, awaited)
            case ReportRunning():
                await call(Carrier.report_running, self, action)
            case ExtendLimit():
                await call(Carrier.extend_limit, self, action)
            case Settle():
                await call(Carrier.settle, self, action)
            case Refuse(reason):
                await call(Carrier.refuse, self, reason)
            case CancelAtSlurm():
                await call(Carrier.cancel_at_slurm, self)

    async def fetch_script(self) -> str | None:
        """The batch script of the job, rendered from the released and verified definition.

        None when it cannot be had, which is remembered: by this cluster (it refuses the customer, access is denied, or
        the definition uses what this renderer does not know), or by anybody (it is gone, or is not what was paid
        for). None also when the chain has dropped the claim.
        Raises ServiceError while the Job Definition service does not answer.
        """
        job = await self._once_it_stays()
        if job is None:
            return None
        if unacceptable := why_unacceptable(job, self.session.settings):
            self._attempt = Attempt(unfit=unacceptable)
            return None
        try:
            model = await self.session.services.fetch_definition(job.id, job.definition.definition_hash)
        except NotFound as error:
            self._attempt = Attempt(unusable=error.message)
            return None
        except (AccessDenied, InputError) as error:
            self._attempt = Attempt(unfit=error.message)
            return None
        try:
            verify_resources(model, job.definition)
        except InputError as error:
            self._attempt = Attempt(unusable=error.message)
            return None
        self._ships_output = model.enable_logging
        settings = self.session.settings
        folders = await self.session.registries.folders(model, settings.containers)
        try:
            script = render(model, settings.storage, settings.containers, folders)
            await asyncio.to_thread(check_grammar, script)
        except InputError as error:
            self._attempt = Attempt(unfit=error.message)
            return None
        return script

    async def _once_it_stays(self) -> Job | None:
        """The job when some blocks are on top of its claim, None when the claim does not stand then.

        A reorganisation may take a claim back and bring it again as another one; what Slurm started stays started.
        """
        stays_s = self.session.settings.claim_stays_s
        while (left_s := self.key.claimed_at + stays_s - await self.session.chain.now()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(min(max(left_s, BLOCK_S), LOOK_AGAIN_S))  # the chain may stand still meanwhile
        job = await self.session.chain.job(self.key.job_id)
        return job if self.session.key_of(job) == self.key else None

    async def submit(self, script: str) -> None:
        """Hand the script to Slurm, at most once per claim.

        A job that this cluster will never take is remembered as unfit, to be refused.
        """
        job = await self.session.chain.job(self.key.job_id)
        request = SubmitRequest.of(job, ship_output=bool(self._ships_output))
        try:
            submission = await self.session.cluster.submit(self.key, script, request)
        except SlurmError as error:
            if error.transient:
                raise
            self._attempt = Attempt(unfit=error.message)
            return
        self._attempt = Attempt()
        self._absent_since = None
        if not submission.adopted:
            self._limit_minutes = request.time_limit_minutes
            self.session.metrics.submitted(self.key)
        self.session.monitor.look_now(self.key)
        await self._until_placed()

    async def wait(self, awaited: Awaited) -> None:
        """Return once something else than waiting for `awaited` is to be done."""
        while decide(await self.observe()) == Wait(awaited):
            await self._next_change()

    async def report_running(self, action: ReportRunning) -> None:
        """Tell the chain that the job runs since `elapsed_minutes` started minutes."""
        await self._unless_overtaken(self.session.writer.set_running(self.key.job_id, action.elapsed_minutes))

    async def extend_limit(self, action: ExtendLimit) -> None:
        """Give the job at Slurm the time that its credits buy by now; the customer learns when Slurm refuses.

        A job that Slurm cannot find any more is waited for to be seen so.
        """
        try:
            found = await extend_limit(self.session, self.key, action.minutes)
        except SlurmError as error:
            if error.transient:
                raise
            self._limit_is_final = True
            return
        if found:
            self._limit_minutes = action.minutes
        else:
            await self._until_slurm_shows_it()

    async def settle(self, action: Settle) -> None:
        """Report the end; the contract divides the locked credits."""
        if action.tombstone:
            await self.session.cluster.cancel(self.key)
        settling = self.session.writer.settle(
            self.key.job_id, action.status, action.minutes, action.error, action.exit_status
        )
        if await self._unless_overtaken(settling):
            self.session.metrics.settled(action.status, self._seen.ended_at)

    async def refuse(self, reason: str) -> None:
        """Give the job back to the meta-scheduler, and tell the customer why."""
        logger.warning("job %d is refused: %s", self.key.job_id, reason)
        await self.session.cluster.cancel(self.key)
        await self.session.explain(self.key.job_id, "refused", reason)
        await self._unless_overtaken(self.session.writer.refuse_job(self.key.job_id))

    async def cancel_at_slurm(self) -> None:
        """Bar a late start, cancel at Slurm, and wait until Slurm shows it."""
        await self.session.cluster.cancel(self.key)
        await self._until_slurm_shows_it()

    async def finish(self) -> None:
        """Deliver the rest of the log and free the cluster's record of the end; the job is paid already."""
        await self.session.logs.finish(self.key)
        try:
            await self.session.cluster.acknowledge(self.key)
        except GridError as error:
            logger.warning("job %d: its completion record stays: %s", self.key.job_id, error.message)

    async def _until_placed(self) -> None:
        """Return once Slurm has started the job or said why it waits. Where there is room that takes no time worth a
        step of its own."""
        deadline = time.monotonic() + PROMPT_S
        seen = self._seen
        while not seen.placed and (left_s := deadline - time.monotonic()) > 0:
            seen = await self.session.monitor.changed(self.key, seen, timeout_s=left_s)

    async def _until_slurm_shows_it(self) -> None:
        self.session.monitor.look_now(self.key)
        if self._seen.phase in (Phase.QUEUED, Phase.RUNNING):
            self._seen = await self.session.monitor.changed(self.key, self._seen, timeout_s=LOOK_AGAIN_S)

    async def _next_change(self) -> None:
        chain = asyncio.create_task(self.session.wakeups.wait(self.key.job_id, LOOK_AGAIN_S))
        slurm = asyncio.create_task(self.session.monitor.changed(self.key, self._seen, timeout_s=LOOK_AGAIN_S))
        try:
            await asyncio.wait({chain, slurm}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (chain, slurm):
                task.cancel()
            await asyncio.gather(chain, slurm, return_exceptions=True)

    async def _unless_overtaken(self, sending: Awaitable[object]) -> bool:
        """Whether it was this carrier that did it."""
        try:
            await sending
        except ContractError as error:
            if error.name not in OVERTAKEN:
                raise
            return False
        return True


@asynccontextmanager
async def carry(
    session: ProviderSession, key: JobKey, *, stand_in: asyncio.Task[None] | None = None
) -> AsyncIterator[Carrier]:
    """The carrier of a claim, which nobody else of this process drives meanwhile: see `ProviderSession.driving`."""
    async with session.driving(key, stand_in=stand_in):
        yield Carrier(session, key)
