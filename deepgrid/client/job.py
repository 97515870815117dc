"""A job of the grid, as the client last read it, and what can be done with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from datetime import datetime
from decimal import Decimal
from typing import Self

from deepgrid.client.amounts import Credits, Duration, credits_of, seconds_of, wei_of
from deepgrid.client.display.exits import exit_status_of, own_exit_status
from deepgrid.client.display.html import job_html
from deepgrid.client.display.record import JobRecord
from deepgrid.client.display.story import cancel_words, outcome, steps_of, waiting_words
from deepgrid.client.engine.connection import Connection
from deepgrid.client.engine.interruption import continues, noted
from deepgrid.client.engine.live import live_events
from deepgrid.client.engine.output import last_lines, lines_of, pieces
from deepgrid.client.engine.reading import read_record, read_remarks
from deepgrid.client.errors import WaitTimeout
from deepgrid.client.events import JobEnd, JobEvent
from deepgrid.client.outcome import bill_of, error_of
from deepgrid.client.values import Bill, LogLine, Remark, Step, moment_of
from deepgrid.errors import InputError
from deepgrid.lifecycle.job import Job as ChainJob
from deepgrid.lifecycle.states import JobStatus

LAST_LINES = 20  # of a failed job's output, in its error


def _silent(_: str) -> None:
    return None


class AsyncJob:
    """A job. Its attributes are what the client read last: `refresh`, `wait` and `watch` read it again.

    Attributes:
        parameters: The parameters that `map` gave to the job, with `pack` a tuple of them; None for other jobs.
        last_transaction: Hash of the last transaction that `cancel` or `top_up` sent; empty before.
    """

    def __init__(
        self, connection: Connection, job: ChainJob, *, cluster: str = "", remarks: tuple[Remark, ...] | None = None,
        parameters: Mapping[str, object] | tuple[Mapping[str, object], ...] | None = None,
    ) -> None:  # fmt: skip
        self._connection = connection
        self._job = job
        self._cluster = cluster
        self._remarks = remarks
        self.parameters = parameters
        self.last_transaction = ""

    @classmethod
    async def read(cls, connection: Connection, job_id: int) -> Self:
        """Read a job from the chain. Raises NotFound."""
        job = cls(connection, await connection.patiently(lambda: connection.chain.job(job_id)))
        return await job._with_details()

    # -- what was read last ------------------------------------------------------------------

    @property
    def id(self) -> int:
        """Number of the job."""
        return self._job.id

    @property
    def name(self) -> str:
        """Name of the job. Its customer chose it."""
        return self._job.name

    @property
    def status(self) -> JobStatus:
        """State of the job; `status.words` says it in words."""
        return self._job.status

    @property
    def over(self) -> bool:
        """Whether the job is over and its bill final."""
        return self._job.status.cold

    @property
    def customer(self) -> str:
        """Address of the customer."""
        return self._job.customer

    @property
    def cluster(self) -> str:
        """Name of the cluster; empty while none is assigned."""
        return self._cluster

    @property
    def provider(self) -> str | None:
        """Address of the cluster's provider; None while no cluster is assigned."""
        return self._job.provider

    @property
    def waits_for(self) -> str:
        """What the job waits for, and why; empty while it runs and when it is over."""
        return waiting_words(self._job, self._cluster, self._remarks)

    @property
    def remarks(self) -> tuple[Remark, ...] | None:
        """Remarks of the grid on the job, oldest first; None if the services did not answer."""
        return self._remarks

    @property
    def outcome(self) -> str:
        """How the job ended, in words; empty until then."""
        return outcome(self._job) if self.over else ""

    @property
    def exit_code(self) -> int | None:
        """Exit status as a shell gives it: 3, or 137 for a job that signal 9 ended. None if it has none."""
        if not self.over or (not self._job.exit_status and self.status is not JobStatus.FINISHED):
            return None
        return own_exit_status(self._job.exit_status)

    @property
    def exit_status(self) -> int | None:
        """Exit status of `dps` for this job: the job's own, or one for its final state. None until it is over."""
        return exit_status_of(self._job) if self.over else None

    @property
    def bill(self) -> Bill | None:
        """The bill; None until the job is over."""
        return bill_of(self._job) if self.over else None

    @property
    def locked(self) -> Decimal:
        """Credits that are, or were, locked for the job."""
        return credits_of(self._job.locked_wei)

    @property
    def rate(self) -> Decimal | None:
        """Credits per minute; None while no cluster is assigned."""
        return credits_of(self._job.rate_wei_per_minute) if self._job.provider else None

    @property
    def submitted(self) -> datetime | None:
        """When the job was requested."""
        return moment_of(self._job.submitted_at)

    @property
    def started(self) -> datetime | None:
        """When its cluster reported that it runs; None if it never ran."""
        return moment_of(self._job.started_at)

    @property
    def ended(self) -> datetime | None:
        """When it was settled; None until then."""
        return moment_of(self._job.ended_at)

    @property
    def on_chain(self) -> ChainJob:
        """All values of the job on chain: amounts in wei, times in unix seconds, memory in MB."""
        return self._job

    # -- reading -----------------------------------------------------------------------------

    async def refresh(self) -> Self:
        """Read the job, its cluster and its remarks again.

        Returns:
            The job itself.

        Raises:
            ChainError: The node does not answer.
        """
        self._job = await self._connection.patiently(lambda: self._connection.chain.job(self.id))
        return await self._with_details()

    async def wait(self, timeout: Duration | None = None) -> Self:
        """Wait until the job is over. Outages of the node only delay it.

        Args:
            timeout: Longest wait, in seconds or as a text such as `2h`. None means without a limit.

        Returns:
            The job itself.

        Raises:
            WaitTimeout: The time limit is over. The job continues.
        """
        if self.over:
            return self
        try:
            with noted(continues(self.id)):
                async with asyncio.timeout(seconds_of(timeout)):
                    async for job in self._connection.poller.until([self.id], lambda job: job.status.cold):
                        self._job = job
        except TimeoutError:
            raise WaitTimeout(f"Job {self.id} is not over after {timeout}.", self) from None
        return await self._with_details()

    async def check(self) -> Self:
        """Raise an error unless the job finished successfully.

        Returns:
            The job itself.

        Raises:
            InputError: The job is not over.
            JobFailed: It failed. The error has the exit code and the last lines of its output.
            JobCancelled: It was cancelled.
            OutOfCredits: It used up its credits.
            JobPanicked: The grid ended it with a full refund.
        """
        if not self.over:
            raise InputError(f"Job {self.id} is not over: it is {self.status.words}.", next_step="Wait for it first.")
        if self.status is not JobStatus.FINISHED:
            raise error_of(self, self._job, await self._last_lines())
        return self

    async def logs(
        self, follow: bool = False, *, tail: int | None = None, say: Callable[[str], None] = _silent
    ) -> AsyncIterator[LogLine]:
        """Lines of the job's output. Control sequences other than colours are removed.

        Args:
            follow: Go on until the output is complete. Outages of the services only delay it.
            tail: Begin with the last `tail` lines that are stored now. None means with the first line.
            say: Gets a sentence about each outage, and when the job starts again on another cluster.

        Yields:
            The lines.

        Raises:
            AccessDenied: The job is another customer's.
            InputError: `tail` is negative.
            ServiceError: Without `follow`, the services do not answer.
        """
        if tail is not None and tail < 0:
            raise InputError(f"{tail} lines cannot be read.", next_step="Give a number of lines.")
        async for lines in lines_of(self._connection, self.id, follow=follow, tail=tail, say=say):
            for line in lines:
                yield line

    async def output(self, follow: bool = False) -> AsyncIterator[bytes]:
        """The job's output as it was written, in pieces of any size. When another cluster starts it, it begins anew.

        Args:
            follow: Go on until the output is complete.

        Yields:
            Pieces of the output.
        """
        async for piece in pieces(self._connection, self.id, follow=follow):
            yield piece.data

    async def events(self) -> AsyncGenerator[JobEvent, None]:
        """The live view of the job, from its request until it is over.

        Outages of the node and of the services only delay it. Without a key it has no remarks and no output.

        Yields:
            Step for each state, Remark, LogLine, ViewMessage for an outage, and at the end one JobEnd with the bill.

        Raises:
            ChainError: The node refuses to answer.
        """
        async with aclosing(live_events(self._connection, self.id)) as events:
            async for event in events:
                if isinstance(event, JobEnd):
                    self._job, self._cluster = event.record.job, event.record.cluster
                yield event

    async def record(self) -> JobRecord:
        """Read the job again with all that is known about it: history, division of its deposit, remarks.

        Returns:
            The record.

        Raises:
            ChainError: The node does not answer.
        """
        record = await self._connection.patiently(lambda: read_record(self._connection, self.id))
        self._job, self._cluster, self._remarks = record.job, record.cluster, record.remarks
        return record

    @property
    async def history(self) -> list[Step]:
        """All changes of its state, oldest first."""
        changes = await self._connection.patiently(lambda: self._connection.chain.history(self.id))
        return steps_of(changes, self._job, self._cluster)

    @property
    async def transactions(self) -> list[str]:
        """Hashes of the transactions that changed its state, oldest first."""
        return [step.transaction for step in await self.history]

    # -- changing ----------------------------------------------------------------------------

    async def cancel(self) -> Self:
        """Cancel the job: at once before a cluster has claimed it, from then on by a request to the cluster.

        Returns:
            The job itself.

        Raises:
            ContractError: It is over, or is another customer's.
            ChainError: The node does not answer.
        """
        receipt = await self._connection.session.writer.cancel_job(self.id)
        self.last_transaction = receipt.tx_hash
        return await self.refresh()

    async def after_cancel(self) -> str:
        """What follows the cancellation of the job, in words.

        Returns:
            How many credits came back, or what the cluster does next and by when.

        Raises:
            ChainError: The node does not answer.
        """
        return cancel_words(self._job, await self._connection.patiently(self._connection.chain.constants))

    async def top_up(self, credits: Credits, *, approve: bool = True) -> Self:
        """Buy more time for a job that a cluster has claimed. What it does not use is returned.

        Args:
            credits: Credits to add.
            approve: Raise an allowance that is too low to exactly this amount.

        Returns:
            The job itself.

        Raises:
            ContractError: No cluster has claimed it, or it is over.
            InputError: There are too few credits.
            ChainError: The node does not answer.
        """
        async with self._connection.spending:
            receipt = await self._connection.session.top_up(self.id, wei_of(credits), approve=approve)
        self.last_transaction = receipt.tx_hash
        return await self.refresh()

    # -- parts -------------------------------------------------------------------------------

    def _update(self, job: ChainJob, cluster: str) -> None:
        self._job, self._cluster = job, cluster

    async def _with_details(self) -> Self:
        """Read what the chain does not keep with the job: the cluster's name and, while it waits, remarks."""
        self._cluster = await self._connection.patiently(lambda: self._connection.cluster_names.of(self._job.provider))
        if self.status.hot and self.status is not JobStatus.RUNNING and self._connection.has_key:
            self._remarks = await read_remarks(self._connection, self.id)
        return self

    async def _last_lines(self) -> tuple[str, ...]:
        if self.status is not JobStatus.FAILED or not self._connection.has_key:
            return ()
        return await last_lines(self._connection, self.id, LAST_LINES, self._connection.settings.last_lines_s)

    def _repr_html_(self) -> str:
        return job_html(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id}, {self.name!r}, {self.status.words})"
