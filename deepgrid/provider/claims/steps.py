"""The side effects of a carrier: one method per step.

Each step checks whether it was done before it acts. So two carriers, or one killed half-way, do nothing twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable

from deepgrid.errors import AccessDenied, ContractError, InputError, NotFound, SlurmError
from deepgrid.lifecycle.actions import Awaited, ExtendLimit, ReportRunning, Settle, Wait
from deepgrid.lifecycle.decide import Attempt, decide
from deepgrid.lifecycle.job import Job
from deepgrid.provider.claims.customer_requests import extend_limit
from deepgrid.provider.claims.observer import ClaimObserver
from deepgrid.provider.terms import why_unacceptable
from deepgrid.sbatch import render
from deepgrid.services.script_check import check_grammar
from deepgrid.slurm.submit.protocol import SubmitRequest
from deepgrid.workflow import verify_resources

logger = logging.getLogger(__name__)

# Contract errors that mean that another process did this step already.
OVERTAKEN = frozenset(
    {
        "JobHotStatusOnly", "SameStatusError", "InvalidTransition", "JobProviderOnly", "ProviderNotJoined",
        "MetaScheduledScheduledStatusOnly",
    }
)  # fmt: skip


class ClaimSteps:
    """The steps of one claim. `Carrier.act` names each of them and chooses the next one."""

    def __init__(self, observer: ClaimObserver) -> None:
        self._observer = observer
        self._session = observer.session
        self._key = observer.key

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
        settings = self._session.settings
        if unacceptable := why_unacceptable(job, settings):
            self._unfit(unacceptable)
            return None
        try:
            model = await self._session.services.fetch_definition(job.id, job.definition.definition_hash)
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
        self._observer.ships_output = model.enable_logging
        folders = await self._session.registries.folders(model, settings.containers)
        try:
            script = render(model, settings.storage, settings.containers, folders)
            await asyncio.to_thread(check_grammar, script)
        except InputError as error:
            self._unfit(error.message)
            return None
        return script

    async def submit(self, script: str) -> None:
        """Hand the script to Slurm, at most once per claim.

        When this cluster can never run the job, that is noted, and `decide` then refuses the job.
        """
        job = await self._session.chain.job(self._key.job_id)
        request = SubmitRequest.of(job, ship_output=bool(self._observer.ships_output))
        try:
            storage = self._session.settings.storage.of_account
            await self._session.cluster.make_storage(self._key, job.customer, storage)
            submission = await self._session.cluster.submit(self._key, script, request)
        except SlurmError as error:
            if error.transient:
                raise
            self._unfit(error.message)
            return
        self._observer.note_submission()
        if not submission.adopted:
            self._observer.limit_minutes = request.time_limit_minutes
            self._session.metrics.submitted(self._key)
        self._session.monitor.look_now(self._key)
        await self._observer.until_placed()

    async def wait(self, awaited: Awaited) -> None:
        """Return once there is something else to do than to wait for `awaited`."""
        while decide(await self._observer.observe()) == Wait(awaited):
            await self._observer.next_change()

    async def report_running(self, action: ReportRunning) -> None:
        """Report to the chain that the job has been running for `elapsed_minutes`, counting started minutes."""
        await self._unless_overtaken(self._session.writer.set_running(self._key.job_id, action.elapsed_minutes))

    async def extend_limit(self, action: ExtendLimit) -> None:
        """Raise the job's limit at Slurm to what its credits now buy. The customer is notified when Slurm refuses.

        If Slurm cannot find the job any more, wait until the monitor sees that too.
        """
        try:
            found = await extend_limit(self._session, self._key, action.minutes)
        except SlurmError as error:
            if error.transient:
                raise
            self._observer.limit_is_final = True
            return
        if found:
            self._observer.limit_minutes = action.minutes
        else:
            await self._observer.until_slurm_changes()

    async def settle(self, action: Settle) -> None:
        """Report the end. The contract pays the provider and returns the rest."""
        if action.tombstone:
            await self._session.cluster.cancel(self._key)
        settling = self._session.writer.settle(
            self._key.job_id, action.status, action.minutes, action.error, action.exit_status
        )
        if await self._unless_overtaken(settling):
            self._session.metrics.settled(action.status, self._observer.seen.ended_at)

    async def refuse(self, reason: str) -> None:
        """Give the job back to the meta-scheduler, and tell the customer why."""
        logger.warning("job %d is refused: %s", self._key.job_id, reason)
        await self._session.cluster.cancel(self._key)
        await self._session.explain(self._key.job_id, "refused", reason)
        await self._unless_overtaken(self._session.writer.refuse_job(self._key.job_id))

    async def cancel_at_slurm(self) -> None:
        """Cancel the claim's job at Slurm, bar a late start, and wait until Slurm shows the end."""
        await self._session.cluster.cancel(self._key)
        await self._observer.until_slurm_changes()

    async def _once_claim_is_stable(self) -> Job | None:
        """The job once enough blocks are on top of its claim; None when the chain has dropped the claim by then.

        A reorganisation may undo a claim and mine it again as another claim. A job that Slurm started stays started.
        """
        intervals = self._session.intervals
        stable_at = self._key.claimed_at + self._session.settings.claim_stays_s
        while (left_s := stable_at - await self._session.chain.now()) > 0:  # noqa: ASYNC110
            # The chain's clock stands still while no block is mined.
            await asyncio.sleep(min(max(left_s, intervals.block_poll_s), intervals.observe_again_s))
        job = await self._session.chain.job(self._key.job_id)
        return job if self._session.key_of(job) == self._key else None

    def _unfit(self, reason: str) -> None:
        """Note that this cluster cannot run the job."""
        self._observer.attempt = Attempt(unfit=reason)

    def _unusable(self, reason: str) -> None:
        """Note that no cluster can run the job."""
        self._observer.attempt = Attempt(unusable=reason)

    async def _unless_overtaken(self, sending: Awaitable[object]) -> bool:
        """Send a transaction; False when another process did the same step first."""
        try:
            await sending
        except ContractError as error:
            if error.name not in OVERTAKEN:
                raise
            return False
        return True
