"""Changes the grid with one typed method per call. Each method waits until its transaction is mined.

Raises ContractError for a revert, InputError for values that do not fit on chain.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from deepgrid.billing.entries import Settlement
from deepgrid.chain.batches import BatchWriter, Claimed, Report, Request, report_args, request_args, short_error
from deepgrid.chain.history import settlement_in
from deepgrid.chain.node.values import coded_hardware, coded_id, coded_labels, coded_prices, coded_wishes
from deepgrid.chain.transactions.transaction import Call, Receipt
from deepgrid.errors import ContractError
from deepgrid.lifecycle.job import NO_WISHES, Affinity, Hardware, JobDefinition, Label, Prices, Wishes
from deepgrid.lifecycle.states import JobStatus, may_move

# Gas of calls that cannot be estimated, because they follow another one in the same block.
APPROVE_GAS = 100_000
REQUEST_GAS = 1_000_000
REQUEST_GAS_PER_LABEL = 150_000
REQUEST_GAS_PER_TEXT_BYTE = 1_000
TOP_UP_GAS = 400_000


@dataclass(frozen=True, slots=True)
class ToppedUp:
    """A job that was topped up, and the minutes that it may run longer. The whole limit is the job's."""

    job_id: int
    added_minutes: int


class Writer(BatchWriter):
    """Changes the grid with one key."""

    # -- customer ----------------------------------------------------------------------------

    async def approve(self, amount_wei: int) -> Receipt:
        """Let the grid lock up to `amount_wei` of this account's credits."""
        return await self._send("Credit", "approve", self.chain.book.meta_scheduler, amount_wei)

    async def request_job(
        self,
        definition: JobDefinition,
        locked_wei: int,
        name: str,
        delegate: bool = False,
        *,
        wishes: Wishes = NO_WISHES,
        approve_first: int | None = None,
    ) -> int:
        """Request a job and lock `locked_wei` for it; returns its id.

        `delegate` lets the grid top the job up from this account's allowance. The contract keeps the `wishes`. With
        `approve_first` (wei) a transaction just before sets the allowance.
        """
        args: tuple[Any, ...] = request_args(Request(definition, locked_wei, name, delegate))
        coded, function = coded_wishes(wishes), "requestNewJob"
        if any(coded):
            args, function = (*args, coded), "requestNewJobWithWishes"
        receipt = await self._send_approved(approve_first, _request_gas(definition), function, *args)
        job_id = self._event(receipt, "NewJobRequestEvent").job_id
        self.chain.seen_jobs.add([job_id])
        return job_id

    async def cancel_job(self, job_id: int) -> Receipt:
        """Cancel an own job: at once before its claim, from then on by request to its provider."""
        try:
            return await self._send("MetaScheduler", "cancelJob", coded_id(job_id))
        except ContractError:  # a claim came first, so a request takes more gas than estimated; or it is refused
            return await self._send("MetaScheduler", "cancelJob", coded_id(job_id))

    async def top_up(self, job_id: int, amount_wei: int, *, approve_first: int | None = None) -> Receipt:
        """Lock `amount_wei` more on a claimed job, which may then run longer; anyone may pay.

        With `approve_first` (wei) a transaction just before sets the allowance.
        """
        return await self._send_approved(approve_first, TOP_UP_GAS, "topUpJob", coded_id(job_id), amount_wei)

    async def set_delegate_spending(self, job_id: int, allowed: bool) -> Receipt:
        """Allow or forbid the grid to top up an own job from the allowance, by at most the deposit in total."""
        return await self._send("MetaScheduler", "setDelegateSpendingAuthority", coded_id(job_id), allowed)

    async def set_spending_limit(self, job_id: int, limit_wei: int) -> Receipt:
        """Let the grid top an own job up by at most `limit_wei` from now on; 0 forbids it."""
        return await self._send("MetaScheduler", "setSpendingLimit", coded_id(job_id), limit_wei)

    async def time_out(self, job_id: int) -> Receipt:
        """Take a job from a provider that did not act in time. It becomes PENDING, or PANICKED if it was running."""
        return await self._send("MetaScheduler", "timeoutJob", coded_id(job_id))

    async def transfer(self, to: str, amount_wei: int) -> Receipt:
        """Transfer credits."""
        return await self._send("Credit", "transfer", to, amount_wei)

    async def give_gas_money(self, to: str, amount_wei: int) -> Receipt:
        """Transfer some of the chain's own currency, which pays for transactions."""
        return await self.sender.send(Call("A transfer", to, "0x", amount_wei))

    # -- operator ----------------------------------------------------------------------------

    async def meta_schedule(self, job_id: int, provider: str) -> Receipt:
        """Assign a pending job to a provider and fix its price."""
        return await self._send("MetaScheduler", "metaSchedule", coded_id(job_id), provider)

    async def approve_proposal(self, provider: str, looked_at: bytes) -> Receipt:
        """Approve a provider's proposal if it is still the proposal that the operator has read.

        `looked_at` is the `proposal_hash` of the reviewed proposal. Raises ContractError `ProposalChanged` if another
        one waits.
        """
        return await self._send("ProviderManager", "approveProposal", provider, looked_at)

    async def remove_provider(self, provider: str) -> Receipt:
        """Remove a provider with its proposal and its approved version."""
        return await self._send("ProviderManager", "remove", provider)

    async def ban_provider(self, provider: str) -> Receipt:
        """Bar a provider from new jobs and from claims. Its running jobs are settled as usual."""
        return await self._send("ProviderManager", "ban", provider)

    async def unban_provider(self, provider: str) -> Receipt:
        """Lift a ban. The version that was approved before is in force again."""
        return await self._send("ProviderManager", "unban", provider)

    async def top_up_delegated(self, job_id: int) -> Receipt:
        """Buy one slice of time from the customer's allowance, for a job with spending authority."""
        return await self._send("MetaScheduler", "topUpJobDelegate", coded_id(job_id))

    async def panic_job(self, job_id: int, error: str) -> Receipt:
        """End a hot job with a full refund for any run time; `error` is for the customer."""
        return await self._send("MetaScheduler", "panicJob", coded_id(job_id), short_error(error))

    async def set_constant(self, setter: str, value: int) -> Receipt:
        """Change a setting of the contract by its setter, such as `setClaimJobTimeout` (the owner's key).

        `setDeepsquareCut` only gives notice, see `apply_cut`.
        """
        return await self._send("MetaScheduler", setter, value)

    async def apply_cut(self) -> Receipt:
        """Put the announced cut of the platform in force after its notice period (any key)."""
        return await self._send("MetaScheduler", "applyDeepsquareCut")

    async def accept_requests(self, accepted: bool) -> Receipt:
        """Open or close the grid for new jobs. Existing jobs continue (the admin's key)."""
        return await self._send("MetaScheduler", "setEnableRequestNewJob", accepted)

    async def withdraw_cut(self, amount_wei: int) -> Receipt:
        """Withdraw the platform's cut of settled jobs (the admin's key)."""
        return await self._send("MetaScheduler", "withdrawAdmin", amount_wei)

    async def mint(self, to: str, amount_wei: int) -> Receipt:
        """Create credits."""
        return await self._send("Credit", "mint", to, amount_wei)

    # -- provider ----------------------------------------------------------------------------

    async def register(self, hardware: Hardware, prices: Prices, labels: tuple[Label, ...]) -> Receipt:
        """Propose this account as a provider, or a change of its offer. The operator approves it."""
        return await self._send(
            "ProviderManager", "register", coded_hardware(hardware), coded_prices(prices), coded_labels(labels)
        )

    async def claim_next(self) -> Claimed | None:
        """Claim the job that has waited longest for this provider; None if none waits."""
        return next(iter(await self.claim_next_jobs(1)), None)

    async def claim_next_cancelling(self) -> int | None:
        """Take the oldest cancel request off this provider's queue. None if the queue is empty."""
        receipt = await self._unless_empty("claimNextCancellingJob")
        return None if receipt is None else self._event(receipt, "ClaimNextCancellingJobEvent").job_id

    async def claim_next_top_up(self) -> ToppedUp | None:
        """Take the oldest top-up off this provider's queue; None if the queue is empty."""
        receipt = await self._unless_empty("claimNextTopUpJob")
        if receipt is None:
            return None
        event = self._event(receipt, "ClaimNextTopUpJobEvent")
        return ToppedUp(event.job_id, event.args["maxDurationMinute"])

    async def refuse_job(self, job_id: int) -> Receipt:
        """Refuse an assigned or claimed job before it runs."""
        return await self._send("MetaScheduler", "refuseJob", coded_id(job_id))

    async def set_running(self, job_id: int, elapsed_minutes: int) -> Receipt:
        """Report that a claimed job has been running for `elapsed_minutes`."""
        return await self._report(Report(job_id, JobStatus.RUNNING, elapsed_minutes))

    async def settle(
        self, job_id: int, status: JobStatus, minutes: int, error: str = "", exit_status: int = 0
    ) -> Receipt:
        """Report a job's end and bill `minutes`. `error` (cut at 500 bytes) is for the customer.

        `exit_status` is Slurm's wait status (768 for exit code 3).

        A reorganisation may have dropped the RUNNING report. The contract then takes some ends as proof that the
        job never ran, and bills nothing. With such an end, RUNNING is reported in the same transaction.
        """
        end = Report(job_id, status, minutes, error, exit_status)
        if not minutes or not may_move(JobStatus.SCHEDULED, status):
            return await self._report(end)
        reports = [Report(job_id, JobStatus.RUNNING, minutes), end]
        receipt = await self._send("MetaScheduler", "providerSetJobStatuses", list(map(report_args, reports)))
        for skipped in self._skipped(receipt):
            if skipped.index:  # the chain usually has the RUNNING report, and skips it
                raise skipped.reason
        return receipt

    def settlement_in(self, receipt: Receipt, at: int) -> Settlement:
        """Return the division of the deposit by the transaction that settled a job at this time."""
        return settlement_in(self._event(receipt, "JobSettledEvent"), at)

    async def _send_approved(self, allowance_wei: int | None, gas: int, function: str, *args: Any) -> Receipt:
        """Call `function`, with an allowance just before if it is given. `gas` is for the call that follows an
        allowance.
        """
        if allowance_wei is None:
            return await self._send("MetaScheduler", function, *args)
        _, receipt = await asyncio.gather(
            self._send("Credit", "approve", self.chain.book.meta_scheduler, allowance_wei, gas=APPROVE_GAS),
            self._send("MetaScheduler", function, *args, gas=gas),
        )
        return receipt

    async def _report(self, report: Report) -> Receipt:
        return await self._send("MetaScheduler", "providerSetJobStatus", *report_args(report))

    async def _unless_empty(self, function: str) -> Receipt | None:
        """Call `function`, which takes an item off a queue; None if the queue is empty."""
        try:
            return await self._send("MetaScheduler", function)
        except ContractError as error:
            if error.name in ("NoJob", "ProviderNotJoined"):  # a banned provider may still empty its queues
                return None
            raise


def _request_gas(definition: JobDefinition) -> int:
    """Return the gas that is enough for any request of this size. Unused gas costs nothing."""
    labels: list[Label | Affinity] = [*definition.uses, *definition.affinity]
    text = len(definition.definition_hash) + sum(len((label.key + label.value).encode()) for label in labels)
    return REQUEST_GAS + REQUEST_GAS_PER_LABEL * len(labels) + REQUEST_GAS_PER_TEXT_BYTE * text
