"""A job of the grid, as the client last read it, and what can be done with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Self

from deepgrid.client.amounts import Credits, Duration, seconds_of, wei_of
from deepgrid.client.display.html import job_html
from deepgrid.client.display.record import JobRecord
from deepgrid.client.display.story import cancel_words, steps_of
from deepgrid.client.engine.connection import Connection
from deepgrid.client.engine.interruption import continues, noted
from deepgrid.client.engine.live import live_events
from deepgrid.client.engine.output import last_lines, lines_of, pieces
from deepgrid.client.engine.job_records import read_record, read_remarks
from deepgrid.client.errors import WaitTimeout
from deepgrid.client.events import JobEnd, JobEvent
from deepgrid.client.job_view import JobView, Seen
from deepgrid.client.outcome import error_of
from deepgrid.client.values import LogLine, Remark, Step
from deepgrid.errors import InputError
from deepgrid.lifecycle.job import Job as ChainJob
from deepgrid.lifecycle.states import JobStatus

LAST_LINES = 20  # of a failed job's output, in its error


def _silent(_: str) -> None:
    return None


class AsyncJob(JobView):
    """A job. Its attributes are what the client read last: `refresh`, `wait` and `watch` read it again.

    Attributes:
        parameters: The parameters that `map` gave to the job, with `pack` a tuple of them; None for other jobs.
    """

    def __init__(
        self, connection: Connection, job: ChainJob, *, cluster: str = "", remarks: tuple[Remark, ...] | None = None,
        parameters: Mapping[str, object] | tuple[Mapping[str, object], ...] | None = None,
    ) -> None:  # fmt: skip
        self._connection = connection
        self._last = Seen(job, cluster, remarks)
        self.parameters = parameters
        self._last_transaction = ""

    @classmethod
    async def read(cls, connection: Connection, job_id: int) -> Self:
        """Read a job from the chain. Raises NotFound."""
        job = cls(connection, await connection.patiently(lambda: connection.chain.job(job_id)))
        return await job._with_details()

    @property
    def _seen(self) -> Seen:
        return self._last

    @property
    def last_transaction(self) -> str:
        """Hash of the last transaction that `cancel` or `top_up` sent; empty before."""
        return self._last_transaction

    # -- reading -----------------------------------------------------------------------------

    async def refresh(self) -> Self:
        """Read the job, its cluster and its remarks again.

        Returns:
            The job itself.

        Raises:
            ChainError: The node does not answer.
        """
        job = await self._connection.patiently(lambda: self._connection.chain.job(self.id))
        self._last = replace(self._last, job=job)
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
                        self._last = replace(self._last, job=job)
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
            raise error_of(self, self.on_chain, await self._last_lines())
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

    async def events(self) -> AsyncIterator[JobEvent]:
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
                    self._update(event.record.job, event.record.cluster)
                yield event

    async def record(self) -> JobRecord:
        """Read the job again with all that is known about it: history, division of its deposit, remarks.

        Returns:
            The record.

        Raises:
            ChainError: The node does not answer.
        """
        record = await self._connection.patiently(lambda: read_record(self._connection, self.id))
        self._last = Seen(record.job, record.cluster, record.remarks)
        return record

    @property
    async def history(self) -> list[Step]:
        """All changes of its state, oldest first."""
        changes = await self._connection.patiently(lambda: self._connection.chain.history(self.id))
        return steps_of(changes, self.on_chain, self.cluster)

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
        self._last_transaction = receipt.tx_hash
        return await self.refresh()

    async def after_cancel(self) -> str:
        """What follows the cancellation of the job, in words.

        Returns:
            How many credits came back, or what the cluster does next and by when.

        Raises:
            ChainError: The node does not answer.
        """
        return cancel_words(self.on_chain, await self._connection.patiently(self._connection.chain.constants))

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
        self._last_transaction = receipt.tx_hash
        return await self.refresh()

    # -- parts -------------------------------------------------------------------------------

    def _update(self, job: ChainJob, cluster: str) -> None:
        self._last = replace(self._last, job=job, cluster=cluster)

    async def _with_details(self) -> Self:
        """Read what the chain does not keep with the job: the cluster's name and, while it waits, remarks."""
        cluster = await self._connection.patiently(lambda: self._connection.cluster_names.of(self.provider))
        self._last = replace(self._last, cluster=cluster)
        if self.status.hot and self.status is not JobStatus.RUNNING and self._connection.has_key:
            self._last = replace(self._last, remarks=await read_remarks(self._connection, self.id))
        return self

    async def _last_lines(self) -> tuple[str, ...]:
        if self.status is not JobStatus.FAILED or not self._connection.has_key:
            return ()
        return await last_lines(self._connection, self.id, LAST_LINES, self._connection.settings.last_lines_s)

    def _repr_html_(self) -> str:
        return job_html(self)
