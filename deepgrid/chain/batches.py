"""Many calls in one transaction: with many jobs at once, they take a quarter of the gas and of the time.

A batch of requests is all or nothing. In a batch of assignments or reports, an item that lost a race is returned as
Skipped, with the error of the single call; the others are done. A batch that reverts as a whole is halved until the
malformed items are found and each part fits in a transaction.

Raises ContractError and InputError as the single calls of `writer.py` do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from deepgrid.chain.client import Chain
from deepgrid.chain.node.contract import Event, interface
from deepgrid.chain.node.values import coded_definition, coded_id, coded_name, coded_wishes, definition_of
from deepgrid.chain.transactions.contract_errors import contract_error, too_large
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.transaction import Call, Receipt
from deepgrid.errors import ChainError, ContractError
from deepgrid.lifecycle.job import NO_WISHES, JobDefinition, Wishes
from deepgrid.lifecycle.states import JobStatus

T = TypeVar("T")
Item = bytes | tuple[Any, ...]  # a job's id on chain, or the id followed by more arguments

PAYMENT_GAS, NEXT_PAYMENT_GAS = 60_000, 12_000
MOST_AT_ONCE = 100  # at most about 5 million gas; a transaction may have 16 million, a block 30
MOST_IN_FLIGHT = 8  # transactions of one call: more than a block holds, and few enough to encode without a pause
LONGEST_ERROR_BYTES = 500  # each byte on chain costs gas


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a job. `delegate` lets the grid top it up from the customer's allowance.

    Wishes cost some gas, so a request that has none is made without them.
    """

    definition: JobDefinition
    locked_wei: int
    name: str
    delegate: bool = False
    wishes: Wishes = NO_WISHES


@dataclass(frozen=True, slots=True)
class Report:
    """A provider's report: the job has run for `minutes`, and still runs or has ended.

    `error` (cut at 500 bytes) is for the customer. `exit_status` is Slurm's wait status (768 for exit code 3).
    """

    job_id: int
    status: JobStatus
    minutes: int
    error: str = ""
    exit_status: int = 0


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claimed job, which may run `granted_minutes`."""

    job_id: int
    customer: str
    granted_minutes: int
    definition: JobDefinition
    tx_hash: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A skipped item of a batch: its index, its job and its error."""

    index: int
    job_id: int
    reason: ContractError


class BatchWriter:
    """Changes the grid with one key, many jobs per call."""

    def __init__(self, chain: Chain, sender: Sender) -> None:
        self.chain = chain
        self.sender = sender

    @property
    def address(self) -> str:
        return self.sender.address

    async def request_jobs(self, requests: Sequence[Request]) -> list[int]:
        """Request many jobs and lock their credits, all or none; returns their ids, in order.

        The allowance must already cover them. Their texts and labels together must fit in one contract's code.
        """
        items, wishes = [request_args(one) for one in requests], [coded_wishes(one.wishes) for one in requests]
        if any(map(any, wishes)):
            receipt = await self._send("MetaScheduler", "requestNewJobsWithWishes", items, wishes)
        else:
            receipt = await self._send("MetaScheduler", "requestNewJobs", items)
        job_ids = [event.job_id for event in self._events(receipt, "NewJobRequestEvent")]
        self.chain.seen_jobs.add(job_ids)
        return job_ids

    async def meta_schedule_jobs(self, assignments: Sequence[tuple[int, str]]) -> list[Skipped]:
        """Assign pending jobs (id, provider) and fix their prices; returns the skipped ones."""
        items = [(coded_id(job_id), provider) for job_id, provider in assignments]
        return await self._all_but_skipped("metaScheduleJobs", items)

    async def give_up_jobs(self, job_ids: Sequence[int]) -> list[Skipped]:
        """Cancel pending jobs whose customers' `give_up_at` has come, with full refunds; returns the skipped ones.

        Any account may.
        """
        return await self._all_but_skipped("giveUpJobs", [coded_id(job_id) for job_id in job_ids])

    async def report_jobs(self, reports: Sequence[Report]) -> list[Skipped]:
        """Report on many own jobs, at most once per job; an end settles the job. Returns the skipped ones."""
        return await self._all_but_skipped("providerSetJobStatuses", [report_args(one) for one in reports])

    async def claim_next_jobs(self, most: int) -> list[Claimed]:
        """Claim up to `most` of the jobs that wait for this provider, in order; fewer if they are large.

        It asks for no more jobs than wait now. So a job that comes in later does not change the gas that was estimated.
        """
        most = min(most, await self.chain.claimable(self.address))
        while most:
            try:
                receipt = await self._send("MetaScheduler", "claimNextJobs", most)
                return [_claimed_from(event) for event in self._events(receipt, "ClaimJobEvent")]
            except ContractError as error:
                if error.name == "NoJob":
                    return []
                if not too_large(error) or most == 1:
                    raise
                most = -(-most // 2)
        return []

    # -- parts -------------------------------------------------------------------------------

    async def _all_but_skipped(self, function: str, items: Sequence[Item]) -> list[Skipped]:
        """Call `function` with all `items`, in as many transactions as needed."""
        slots = asyncio.Semaphore(MOST_IN_FLIGHT)

        async def part(first: int) -> list[Skipped]:
            async with slots:
                return await self._part(function, items[first : first + MOST_AT_ONCE], first)

        parts = await all_of(map(part, range(0, len(items), MOST_AT_ONCE)))
        return [skipped for part in parts for skipped in part]

    async def _part(self, function: str, items: Sequence[Item], first: int) -> list[Skipped]:
        """Send one transaction. If it reverts as a whole, send its halves. `first` is the index of its first item."""
        try:
            receipt = await self._send("MetaScheduler", function, items)
        except ContractError as error:
            if len(items) == 1:
                (only,) = items
                return [Skipped(first, int.from_bytes(only if isinstance(only, bytes) else only[0], "big"), error)]
        else:
            return [replace(one, index=first + one.index) for one in self._skipped(receipt)]
        middle = len(items) // 2
        halves = (self._part(function, items[:middle], first), self._part(function, items[middle:], first + middle))
        return [skipped for half in await all_of(halves) for skipped in half]

    # -- sending -----------------------------------------------------------------------------

    async def _send(self, contract: str, function: str, *args: Any, gas: int | None = None) -> Receipt:
        data = interface(contract).encode(function, *args)
        call = Call(function, self.chain.book.contracts[contract], data, spare_gas=_spare_gas(function, args))
        return await self.sender.send(call, gas=gas)

    def _skipped(self, receipt: Receipt) -> list[Skipped]:
        return [_skipped_from(event) for event in self._events(receipt, "BatchItemSkippedEvent")]

    def _event(self, receipt: Receipt, name: str) -> Event:
        found = self._events(receipt, name)
        if not found:
            address = self.chain.book.meta_scheduler
            raise ChainError(f"Transaction {receipt.tx_hash} has no {name}: another contract is at {address}.")
        return found[0]

    def _events(self, receipt: Receipt, name: str) -> list[Event]:
        contract = interface("MetaScheduler")
        address, topic = self.chain.book.meta_scheduler.lower(), contract.topic(name)
        logs = [log for log in receipt.logs if log["address"].lower() == address and log["topics"][:1] == [topic]]
        return [event for event in map(contract.event, logs) if event is not None]


async def all_of(parts: Iterable[Awaitable[T]]) -> list[T]:
    """Return all results. An error is raised after every part has ended, so that none still runs unnoticed."""
    results = await asyncio.gather(*parts, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]


def request_args(request: Request) -> tuple[Any, ...]:
    """Return a request as arguments of `requestNewJob`, and as an item of `requestNewJobs`."""
    return coded_definition(request.definition), request.locked_wei, coded_name(request.name), request.delegate


def _spare_gas(function: str, args: Sequence[Any]) -> int:
    """Return the gas of payments that an estimate may miss: in the second of its start, a job costs nothing yet."""
    if function == "providerSetJobStatus":
        return PAYMENT_GAS
    if function == "providerSetJobStatuses":
        return PAYMENT_GAS + NEXT_PAYMENT_GAS * (len(args[0]) - 1)
    return 0


def report_args(report: Report) -> tuple[Any, ...]:
    """Return a report as arguments of `providerSetJobStatus`, and as an item of `providerSetJobStatuses`."""
    ran = report.minutes, short_error(report.error), report.exit_status
    return coded_id(report.job_id), int(report.status), *ran


def short_error(error: str) -> str:
    """Return the beginning of an error text, as long as the chain keeps it."""
    return error.encode(errors="replace")[:LONGEST_ERROR_BYTES].decode(errors="ignore")


def _claimed_from(event: Event) -> Claimed:
    args = event.args
    return Claimed(
        job_id=event.job_id, customer=args["customer"], granted_minutes=args["maxDurationMinute"],
        definition=definition_of(args["definition"]), tx_hash=event.tx_hash,
    )  # fmt: skip


def _skipped_from(event: Event) -> Skipped:
    return Skipped(event.args["index"], event.job_id, contract_error(event.args["reason"]))
