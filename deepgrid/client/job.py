"""A job of the grid, as the client last read it, and what can be done with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Self

from deepgrid.client.amounts import Credits, Duration, seconds_of, wei_of
from deepgrid.client.display.html import job_html
from deepgrid.client.display.screens import screen_here
from deepgrid.client.display.story import tell
from deepgrid.client.display.text import LogLines
from deepgrid.client.download import download_output, output_of
from deepgrid.client.engine.connection import Connection
from deepgrid.client.engine.interruption import continues, noted
from deepgrid.client.engine.output import pieces
from deepgrid.client.engine.watching import show_live
from deepgrid.client.errors import WaitTimeout
from deepgrid.client.job_view import JobView, Seen
from deepgrid.client.outcome import error_of
from deepgrid.client.values import LogLine, Remark, Step
from deepgrid.client.workflow import Source, Workflow, read_workflow
from deepgrid.errors import GridError, InputError
from deepgrid.lifecycle.job import Job as ChainJob
from deepgrid.lifecycle.states import JobStatus


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

    @classmethod
    async def read(cls, connection: Connection, job_id: int) -> Self:
        """Read a job from the chain. Raises NotFound."""
        job = cls(connection, await connection.patiently(lambda: connection.chain.job(job_id)))
        return await job._with_details()

    @property
    def _seen(self) -> Seen:
        return self._last

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
            last_lines = await self._last_lines() if self.status is JobStatus.FAILED else ()
            raise error_of(self, self.on_chain, last_lines)
        return self

    async def logs(self, follow: bool = False, *, say: Callable[[str], None] = _silent) -> AsyncIterator[LogLine]:
        """Lines of the job's output, from the first one on. Control sequences other than colours are removed.

        Args:
            follow: Go on until the output is complete. Outages of the services only delay it.
            say: Gets a sentence about each outage, and when the job starts again on another cluster.

        Yields:
            The lines.

        Raises:
            AccessDenied: The job is another customer's.
            ServiceError: Without `follow`, the services do not answer.
        """
        lines, claim = LogLines(), 1
        async for piece in pieces(self._connection, self.id, follow=follow, say=say):
            if piece.claim != claim:
                lines, claim = LogLines(), piece.claim
            arrived = datetime.now(UTC)
            for text in lines.feed(piece.data, final=piece.final):
                yield LogLine(arrived, text, claim)

    async def watch(self) -> Self:
        """Show the job and its output until it is over: one cell of a notebook is redrawn, elsewhere lines are printed.

        Outages only delay it. Interrupting it ends the view, not the job.

        Returns:
            The job itself.

        Raises:
            ConfigurationError: In a notebook, the extra `notebook` is missing.
        """
        await show_live(self._connection, self, self.logs(follow=True), screen_here())
        return self

    async def output(self, follow: bool = False) -> AsyncIterator[bytes]:
        """The job's output as it was written, in pieces of any size. When another cluster starts it, it begins anew.

        Args:
            follow: Go on until the output is complete.

        Yields:
            Pieces of the output.
        """
        async for piece in pieces(self._connection, self.id, follow=follow):
            yield piece.data

    async def download(
        self, to: str | PathLike[str], only: str | Sequence[str] | None = None, *,
        workflow: Source | Workflow | None = None,
    ) -> list[Path]:  # fmt: skip
        """Fetch the output from the bucket or web address that the workflow names.

        Files are checked by size, and by checksum where a bucket gives one. An interrupted download goes on where it
        stopped, and files that are there are kept. Several files that came as one archive are unpacked.

        Args:
            to: The target folder. It is created if it is missing.
            only: Patterns of names, such as `*.png`; `*` also stands for `/`. None means all files.
            workflow: The workflow of the job, if this client did not submit it: a definition is released to its
                provider only.

        Returns:
            The files, in the order of their names.

        Raises:
            NoOutput: The workflow is unknown or names no output, or nothing is there.
            ServiceError: The storage does not answer, or refuses.
            InputError: The folder cannot be written, or two files would have the same path.
            ConfigurationError: The extra `s3` is missing.
        """
        read = None if workflow is None else await read_workflow(workflow)
        output = output_of(self.id, self._connection.outputs, None if read is None else read.definition)
        return await download_output(output, Path(to), only, self._connection.settings)

    @property
    async def history(self) -> list[Step]:
        """All changes of its state, oldest first."""
        changes = await self._connection.patiently(lambda: self._connection.chain.history(self.id))
        return [
            Step(step.after, datetime.fromtimestamp(step.at, UTC), words, step.tx_hash)
            for step, words in tell(changes, self.on_chain, self.cluster)
        ]

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
        await self._connection.session.writer.cancel_job(self.id)
        return await self.refresh()

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
            await self._connection.session.top_up(self.id, wei_of(credits), approve=approve)
        return await self.refresh()

    # -- parts -------------------------------------------------------------------------------

    def _update(self, job: ChainJob, cluster: str) -> None:
        self._last = replace(self._last, job=job, cluster=cluster)

    async def _with_details(self) -> Self:
        """Read what the chain does not keep with the job: the cluster's name and, while it waits, remarks."""
        cluster = await self._connection.patiently(lambda: self._connection.cluster_names.of(self.provider))
        self._last = replace(self._last, cluster=cluster)
        if self.status.hot and self.status is not JobStatus.RUNNING and self._connection.has_key:
            self._last = replace(self._last, remarks=await self._read_remarks())
        return self

    async def _read_remarks(self) -> tuple[Remark, ...] | None:
        try:
            notices = await self._connection.session.services.notices(self.id)
        except GridError:
            return None
        return tuple(Remark(datetime.fromtimestamp(one.at, UTC), one.kind, one.text) for one in notices)

    async def _last_lines(self) -> tuple[str, ...]:
        return ()

    def _repr_html_(self) -> str:
        return job_html(self)
