"""Reads for a live display of one customer: balances, new jobs, pages of jobs, remarks, the terms of the grid.

`AsyncGrid` answers single questions; an `Overview` is polled, and reads only what may have changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from deepgrid.chain.node.values import TrackRecord
from deepgrid.client.engine.output import JobOutput
from deepgrid.client.grid import AsyncGrid
from deepgrid.client.job import AsyncJob
from deepgrid.client.job_values import Remark, credits_of
from deepgrid.lifecycle.job import ANSWER_MINUTES

if TYPE_CHECKING:
    from deepgrid.services.kept_messages import Mark


@dataclass(frozen=True, slots=True)
class Account:
    """Balances of a customer as of one block.

    Attributes:
        credits: Credits that can be spent.
        allowance: Credits that the grid may lock.
        gas: The chain's own currency, in units of 10**18 wei.
        block: Number of the newest block.
        at: Time of that block.
    """

    credits: Decimal
    allowance: Decimal
    gas: Decimal
    block: int
    at: datetime


@dataclass(frozen=True, slots=True)
class ContractTerms:
    """Terms of the contract for new jobs, and where credits go.

    Attributes:
        contract: Address of the contract that locks credits.
        credit: Address of the contract of the credits, which transfers them.
        minimum: Least credits to lock for a job.
        cancellation_minutes: Least minutes that are billed when a claimed job is cancelled.
        answer_minutes: Minutes in which a cluster must answer a cancellation. After them, a further one returns what
            cannot be billed any more.
    """

    contract: str
    credit: str
    minimum: Decimal
    cancellation_minutes: int
    answer_minutes: int


def _mark_text(mark: Mark) -> str:
    sets = [mark.tags, *(mark.sweep.parameters if mark.sweep else ())]
    sweep = [mark.sweep.id, mark.sweep.name] if mark.sweep else []
    return " ".join([*(f"{name}={value}" for one in sets for name, value in one.items()), *sweep])


class Overview:
    """Reads of one customer's part of a grid.

    Attributes:
        grid: The grid.
        customer: Address of the customer.
    """

    def __init__(self, grid: AsyncGrid, customer: str) -> None:
        self.grid = grid
        self.customer = customer

    async def account(self) -> Account:
        """Return the balances now. Raises ChainError."""
        connection = await self.grid._connect()
        reads = connection.reads
        head, *amounts = await asyncio.gather(
            reads.head(), reads.balance(self.customer), reads.allowance(self.customer), reads.gas_money(self.customer)
        )
        spendable, allowance, gas = (credits_of(wei) for wei in amounts)
        return Account(spendable, allowance, gas, head.number, datetime.fromtimestamp(head.timestamp, UTC))

    async def ids(self, start: int = 0) -> list[int]:
        """Return the ids of the customer's jobs, oldest first, without the `start` oldest ones. Raises ChainError."""
        connection = await self.grid._connect()
        return await connection.reads.jobs_by_customer(self.customer, start)

    async def jobs(self, job_ids: Sequence[int]) -> list[AsyncJob]:
        """Return these jobs with the names of their clusters, without remarks. Raises ChainError."""
        connection = await self.grid._connect()
        found = await connection.reads.jobs(job_ids)
        return [AsyncJob(connection, job, cluster=await connection.cluster_names.of(job.provider)) for job in found]

    async def remarks(self, job_id: int) -> list[Remark]:
        """Return remarks of the grid on a job, oldest first; none without a key. Raises ServiceError."""
        connection = await self.grid._connect()
        if not connection.has_key:
            return []
        notices = await connection.patiently(lambda: connection.session.services.notices(job_id))
        return [Remark(datetime.fromtimestamp(one.at, UTC), one.kind, one.text) for one in notices]

    async def marks(self) -> dict[str, str]:
        """Return tags, sweep and parameters of own jobs as one text, by the hash of their definition.

        Without a key there are none. Raises ServiceError.
        """
        connection = await self.grid._connect()
        if not connection.has_key:
            return {}
        marks = await connection.patiently(connection.session.services.marks)
        return {name: _mark_text(mark) for name, mark in marks.items()}

    async def record(self, provider: str) -> TrackRecord:
        """Return the numbers of jobs that a cluster started, refused, panicked and let time out. Raises ChainError."""
        connection = await self.grid._connect()
        return await connection.reads.track_record(provider)

    async def output_end(self, job_id: int, size: int) -> bytes:
        """Return the last `size` bytes of a job's stored output. Raises AccessDenied or ServiceError."""
        connection = await self.grid._connect()
        end = b""
        async for piece in JobOutput(connection, job_id).pieces(-size):
            end = (end + piece.chunk.data)[-size:]
        return end

    async def terms(self) -> ContractTerms:
        """Return the terms of the grid. Raises ChainError."""
        connection = await self.grid._connect()
        constants = await connection.reads.constants()
        return ContractTerms(
            contract=connection.chain.book.meta_scheduler,
            credit=connection.chain.book.credit,
            minimum=credits_of(constants.minimum_wei),
            cancellation_minutes=constants.cancellation_fee_minutes,
            answer_minutes=ANSWER_MINUTES,
        )
