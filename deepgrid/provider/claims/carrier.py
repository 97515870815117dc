"""A carrier drives one claim at the provider: it observes, and does what `decide` says, step by step.

Each step checks whether it was done before it acts. So two carriers, or one killed half-way, do nothing twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial

from deepgrid.billing.entries import Settlement
from deepgrid.chain.transactions.contract_errors import unless_overtaken
from deepgrid.errors import AccessDenied, GridError, InputError, NotFound, SlurmError, SubmitLimit
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
from deepgrid.lifecycle.decide import Attempt, Observation, decide
from deepgrid.lifecycle.gpu_types import named_type
from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.provider.claims.claim_script import grid_files_of, script_of
from deepgrid.provider.claims.customer_requests import extend_limit
from deepgrid.provider.claims.job_card import JobCard, Place, job_card
from deepgrid.provider.claims.job_story import JobStory, Tell
from deepgrid.provider.claims.money_end import MoneyEnd
from deepgrid.provider.claims.observer import ClaimObserver
from deepgrid.provider.claims.step_runner import RunStep, call_step
from deepgrid.provider.claims.use_line import say_use
from deepgrid.provider.session import ProviderSession
from deepgrid.provider.terms import why_unacceptable
from deepgrid.slurm.submit.protocol import Submission, SubmitRequest
from deepgrid.workflow import verify_resources

logger = logging.getLogger(__name__)

# Contract errors that mean that another process did this step already.
OVERTAKEN = frozenset(
    {
        "JobHotStatusOnly",
        "SameStatusError",
        "InvalidTransition",
        "JobProviderOnly",
        "ProviderNotJoined",
        "MetaScheduledScheduledStatusOnly",
    }
)


class Carrier:
    """Drives one claim. Open one with `carry`. `act` chooses and names the steps."""

    def __init__(self, session: ProviderSession, key: JobKey, tell: Tell | None = None) -> None:
        self.session = session
        self.key = key
        self.observer = ClaimObserver(session, key)
        self.story = JobStory(tell or partial(logger.info, "job %d: %s", key.job_id))
        self.money_end = MoneyEnd(session)
        self._settlement: Settlement | None = None  # None until this carrier settles the job, or when another did
        self._refusal = ""

    async def observe(self) -> Observation:
        """Read the truth about the claim. While the chain's node is down, retry until it answers."""
        seen = await self.observer.observe()
        self.story.observed(seen)
        await self.money_end.observed(seen)
        return seen

    async def act(self, action: Action, run: RunStep = call_step) -> None:
        """Do one action. `run` runs each step of it, as a Prefect task for example."""
        job, at = f"job {self.key.job_id}", f"on {self.session.settings.cluster}"
        match action:
            case Submit():
                if (script := await run(f"fetch script of {job} {at}", self.fetch_script)) is not None:
                    await run(f"submit {job} to Slurm {at}", self.submit, script)
            case Wait(awaited):
                await run(f"await {awaited.value} {job} {at}", self.wait, awaited)
            case ReportRunning():
                await run(f"report {job} running {at}", self.report_running, action)
            case ExtendLimit(minutes):
                await run(f"extend {job} to {minutes} minutes {at}", self.extend_limit, action)
            case Settle(status):
                await run(f"settle {job} as {status.words} {at}", self.settle, action)
            case Refuse(reason):
                await run(f"refuse {job} {at}", self.refuse, reason)
            case CancelAtSlurm(why):
                await run(f"cancel {job} at Slurm {at}", self.cancel_at_slurm, why)

    async def fetch_script(self) -> str | None:
        """Get the definition from the Job Definition service, verify it, and render the batch script.

        Returns None when there is no script, and notes why. Either this cluster cannot run the job: it refuses the
        customer, access is denied, or the renderer does not support the definition. Or no cluster can: the
        definition is gone, or differs from what was paid for. Also returns None when the chain dropped the claim.
        Raises ServiceError while the Job Definition service does not answer.
        """
        job = await self._once_claim_is_stable()
        if job is None:
            return None
        if unacceptable := why_unacceptable(job, self.session.settings):
            self._unfit(unacceptable)
            return None
        try:
            model = await self.session.services.fetch_definition(job.id, job.definition.definition_hash)
            grid_files = await grid_files_of(model, self.session, job)
        except NotFound as error:
            self._unusable(error.message)
            return None
        except (AccessDenied, InputError) as error:
            self._unfit(error.message)
            return None
        try:
            verify_resources(model, job.definition)
        except InputError as error:
            self._unusable(error.message)
            return None
        self.observer.ships_output = model.enable_logging
        try:
            script = await script_of(model, self.session, grid_files)
        except InputError as error:
            self._unfit(error.message)
            return None
        definition_hash = job.definition.definition_hash
        self.story.tell(f"definition fetched and verified: hash={definition_hash}")
        return script

    async def submit(self, script: str) -> None:
        """Hand the script to Slurm, at most once per claim.

        When this cluster can never run the job, that is noted, and `decide` then refuses the job.
        """
        job = await self.session.chain.job(self.key.job_id)
        if job.claimed_at != self.key.claimed_at or job.granted_minutes < 1:
            return  # taken back meanwhile; for Slurm, 0 minutes are no limit
        gpu_type = named_type(job.definition, await self.session.cluster.gpu_types()) if job.definition.gpus else ""
        request = SubmitRequest.of(job, ship_output=bool(self.observer.ships_output), gpu_type=gpu_type)
        try:
            storage = self.session.settings.storage.of_account
            await self.session.cluster.make_storage(self.key, job.customer, storage)
            submission = await self.session.cluster.submit(self.key, script, request)
        except SubmitLimit as error:
            self.observer.note_limit(error.limit)
            return
        except SlurmError as error:
            if error.transient:
                raise
            self._unfit(error.message)
            return
        self.observer.note_submission()
        self._tell_submission(submission, job.customer)
        if not submission.adopted:
            self.observer.limit_minutes = request.time_limit_minutes
            self.session.metrics.submitted(self.key)
        self.session.monitor.look_now(self.key)
        await self.observer.until_placed()

    async def wait(self, awaited: Awaited) -> None:
        """Return once there is something else to do than to wait for `awaited`."""
        while decide(await self.observe()) == Wait(awaited):
            await self.observer.next_change()

    async def report_running(self, action: ReportRunning) -> None:
        """Report to the chain that the job has been running for `elapsed_minutes`, counting started minutes."""

        async def report() -> None:
            receipt = await self.session.writer.set_running(self.key.job_id, action.elapsed_minutes)
            tx_hash = receipt.tx_hash
            self.story.tell(f"reported as running: transaction={tx_hash}")

        await unless_overtaken(report(), OVERTAKEN)

    async def extend_limit(self, action: ExtendLimit) -> None:
        """Raise the job's limit at Slurm to what its credits now buy. The customer is notified when Slurm refuses.

        If Slurm cannot find the job any more, wait until the monitor sees that too.
        """
        try:
            found = await extend_limit(self.session, self.key, action.minutes)
        except SlurmError as error:
            if error.transient:
                raise
            self.observer.limit_is_final = True
            return
        if found:
            self.observer.limit_minutes = action.minutes
            minutes = action.minutes
            self.story.tell(f"time limit raised to {minutes} minutes")
        else:
            await self.observer.until_slurm_changes()

    async def settle(self, action: Settle) -> None:
        """Report the end. The contract pays the provider and returns the rest."""
        if action.tombstone:
            await self.session.cluster.cancel(self.key)

        async def report() -> None:
            writer = self.session.writer
            receipt = await writer.settle(
                self.key.job_id, action.status, action.minutes, action.error, action.exit_status
            )
            self._settlement = writer.settlement_in(receipt, self.session.monitor.cluster_now())
            self.story.settled(self._settlement, action.status.words)

        if await unless_overtaken(report(), OVERTAKEN) is None:
            self.session.metrics.settled(action.status, self.observer.seen.ended_at)

    async def refuse(self, reason: str) -> None:
        """Give the job back to the meta-scheduler, and tell the customer why."""
        self._refusal = reason
        self.story.tell(f"given back to the grid: {reason}")
        await self.session.cluster.cancel(self.key)
        await self.session.explain(self.key.job_id, "refused", reason)
        await unless_overtaken(self.session.writer.refuse_job(self.key.job_id), OVERTAKEN)

    async def cancel_at_slurm(self, why: str) -> None:
        """Cancel the claim's job at Slurm, bar a late start, and wait until Slurm shows the end."""
        await self.session.cluster.cancel(self.key)
        self.story.tell(f"cancelled at Slurm: {why}")
        await self.observer.until_slurm_changes()

    async def finish(self) -> None:
        """Remove the cluster's completion record, and wait a while for the rest of the log. The job is settled already.

        The receipt, and a log that takes longer, are delivered without this carrier.
        """
        self.session.receipts.add(self.key, self.observer.seen)
        try:
            await self.session.cluster.acknowledge(self.key)
        except GridError as error:
            logger.warning("job %d: its completion record stays: %s", self.key.job_id, error.message)
        if self.story.last is not None:
            await say_use(self.session, self.story.last)
        await self.session.logs.finish(self.key)

    async def card(self) -> JobCard:
        """Return the card of the claim, which is over."""
        seen, cluster = self.story.last or await self.observe(), self.session.cluster.settings
        if self._settlement is None and not seen.is_foreign:
            with suppress(GridError):  # the rest of the card does not depend on it
                self._settlement = await self.session.chain.settlement(self.key.job_id)
            if self._settlement is not None:
                self.story.settled(self._settlement, seen.job.status.words)
        place = Place(self.session.settings.cluster, cluster.partition, self._account_of(seen.job.customer))
        return job_card(seen, place, self._settlement, self._refusal)

    def _account_of(self, customer: str) -> str:
        """Return the Unix account of the customer's jobs; empty if this cluster has none for the customer."""
        settings = self.session.cluster.settings
        with suppress(SlurmError):
            return settings.account_of(customer) or settings.user
        return ""

    def _tell_submission(self, submission: Submission, customer: str) -> None:
        done, slurm_id = "found" if submission.adopted else "submitted", submission.slurm_id
        partition, account = self.session.cluster.settings.partition, self._account_of(customer)
        self.story.tell(f"{done} as Slurm job {slurm_id} in partition {partition} under account {account}")

    async def _once_claim_is_stable(self) -> Job | None:
        """Return the job once enough blocks are on top of its claim; None when the chain has dropped the claim by then.

        A reorganisation may undo a claim and mine it again as another claim. A job that Slurm started stays started.
        """
        intervals = self.session.intervals
        stable_at = self.key.claimed_at + self.session.settings.claim_stays_s
        while (left_s := stable_at - await self.session.chain.now()) > 0:  # noqa: ASYNC110
            # The chain's clock does not advance while no block is mined.
            await asyncio.sleep(min(max(left_s, intervals.block_poll_s), intervals.observe_again_s))
        job = await self.session.chain.job(self.key.job_id)
        return job if self.session.key_of(job) == self.key else None

    def _unfit(self, reason: str) -> None:
        self.observer.attempt = Attempt(unfit=reason)

    def _unusable(self, reason: str) -> None:
        self.observer.attempt = Attempt(unusable=reason)


@asynccontextmanager
async def carry(
    session: ProviderSession, key: JobKey, *, fallback: asyncio.Task[None] | None = None, tell: Tell | None = None
) -> AsyncIterator[Carrier]:
    """Yield the only carrier of the claim in this process while the context lasts. See `ProviderSession.driving`.

    `tell` takes the lines of its story. By default they are logged.
    """
    async with session.driving(key, fallback=fallback):
        yield Carrier(session, key, tell)
