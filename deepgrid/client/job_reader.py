"""What is read of a job: its state, its output, its history."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Self

from deepgrid.client.display.record import JobRecord
from deepgrid.client.display.story import steps_of
from deepgrid.client.engine.connection import Connection
from deepgrid.client.engine.live import live_events
from deepgrid.client.engine.output import lines_of, pieces, status_of
from deepgrid.client.engine.records import read_record, read_remarks
from deepgrid.client.events import JobEnd, JobEvent
from deepgrid.client.job_view import JobView, Seen
from deepgrid.client.values.log_status import LogStatus
from deepgrid.client.values.returned import LogLine, Remark, Step
from deepgrid.client.workflow import Source, Workflow, read_workflow
from deepgrid.errors import InputError
from deepgrid.lifecycle.job import Job as ChainJob
from deepgrid.lifecycle.states import JobStatus


def _silent(_: str) -> None:
    return None


class AsyncJobReader(JobView):
    """A job that is read. `AsyncJob` adds waiting and changes.

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

    async def logs(
        self, follow: bool = False, *, tail: int | None = None, say: Callable[[str], None] = _silent
    ) -> AsyncIterator[LogLine]:
        """Lines of the job's output. Control sequences other than colours are removed.

        Args:
            follow: Go on until the output is complete. Outages of the services only delay it.
            tail: Begin with the last `tail` lines that are stored now. None means with the first line.
            say: Gets a sentence about each outage, when the job starts again on another cluster, and at the end if
                the log lacks a part of the output.

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

    async def log_status(self) -> LogStatus:
        """How complete the job's log is at the moment.

        Returns:
            Its size, and what it lacks.

        Raises:
            AccessDenied: The job is another customer's.
            ServiceError: The services do not answer.
        """
        services = self._connection.session.services
        return status_of(await self._connection.patiently(lambda: services.read_log(self.id, -1)))

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
        from deepgrid.client.download import download_output, output_of  # here: few programs download

        read = None if workflow is None else await read_workflow(workflow)
        output = output_of(self.id, self._connection.outputs, None if read is None else read.definition)
        return await download_output(output, Path(to), only, self._connection.settings)

    @property
    async def history(self) -> list[Step]:
        """All changes of its state, oldest first."""
        changes = await self._connection.patiently(lambda: self._connection.chain.history(self.id))
        return steps_of(changes, self.on_chain, self.cluster)

    @property
    async def transactions(self) -> list[str]:
        """Hashes of the transactions that changed its state, oldest first."""
        return [step.transaction for step in await self.history]

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
