"""The output of a job, as programs read it: lines, bytes, a file, and how complete it is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from deepgrid.client.engine.output import JobOutput, _silent, status_of
from deepgrid.client.job_values import LogLine, LogStatus
from deepgrid.client.workflow import FilePath
from deepgrid.errors import InputError

if TYPE_CHECKING:
    from deepgrid.client.engine.connection import Connection
    from deepgrid.lifecycle.job import Job


class JobLog:
    """Reads the output of a job. It is a part of `AsyncJob`."""

    _connection: Connection
    _job: Job

    @property
    def id(self) -> int:
        """Number of the job."""
        return self._job.id

    async def logs(
        self, follow: bool = False, *, tail: int | None = None, say: Callable[[str], None] = _silent
    ) -> AsyncIterator[LogLine]:
        """Yield the lines of the job's output. Control sequences other than colours are removed.

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
        async for lines in JobOutput(self._connection, self.id, follow, say).lines(tail):
            for line in lines:
                yield line

    async def output(self, follow: bool = False, *, say: Callable[[str], None] = _silent) -> AsyncIterator[bytes]:
        """Yield the job's output as it was written, in pieces of any size. When another cluster starts it, the output
        begins again.

        Args:
            follow: Go on until the output is complete.
            say: As for `logs`.

        Yields:
            Pieces of the output.
        """
        async for piece in JobOutput(self._connection, self.id, follow, say).pieces():
            yield piece.chunk.data

    async def download_log(self, to: FilePath, follow: bool = False) -> LogStatus:
        """Write the job's output to a file, byte by byte as the job wrote it. A file that is there is replaced.

        Args:
            to: The file.
            follow: Go on until the output is complete.

        Returns:
            How complete the file is; `size` is the number of its bytes.

        Raises:
            InputError: The file cannot be written.
            AccessDenied: The job is another customer's.
            ServiceError: Without `follow`, the services do not answer.
        """
        return await JobOutput(self._connection, self.id, follow).save(Path(to))

    async def log_status(self) -> LogStatus:
        """Return how complete the job's log is at the moment.

        Returns:
            Its size, and what it lacks.

        Raises:
            AccessDenied: The job is another customer's.
            ServiceError: The services do not answer.
        """
        services = self._connection.session.services
        return status_of(await self._connection.patiently(lambda: services.read_log(self.id, -1)))
