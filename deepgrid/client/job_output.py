"""The output of a job, as programs read it: lines, bytes, how complete it is, and the files that the job left."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from deepgrid.client.engine.output import JobOutput, Piece, _silent, status_of
from deepgrid.client.errors import NoOutput
from deepgrid.client.job_values import Duration, LogLine, LogStatus, moment_of, seconds_of
from deepgrid.client.workflow import FilePath
from deepgrid.errors import InputError, NotFound

if TYPE_CHECKING:
    from deepgrid.client.engine.connection import Connection
    from deepgrid.client.files import KeptFiles
    from deepgrid.lifecycle.job import Job
    from deepgrid.services.client import FilesClient


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
            follow: Continue until the output is complete. Outages of the services only delay it.
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
            follow: Continue until the output is complete.
            say: As for `logs`.

        Yields:
            Pieces of the output.
        """
        async for piece in JobOutput(self._connection, self.id, follow, say).pieces():
            yield piece.chunk.data

    async def pieces(self, follow: bool = False, *, say: Callable[[str], None] = _silent) -> AsyncIterator[Piece]:
        """Yield the job's output as `output` does, with the times at which it was stored.

        Args:
            follow: Continue until the output is complete.
            say: As for `logs`.

        Yields:
            Pieces. `piece.chunk.parts()` has bytes with their unix seconds, `piece.claim` counts the clusters from 1.
        """
        async for piece in JobOutput(self._connection, self.id, follow, say).pieces():
            yield piece

    async def download_log(self, to: FilePath, follow: bool = False) -> LogStatus:
        """Write the job's output to a file, byte by byte as the job wrote it. A file that is there is replaced.

        Args:
            to: The file.
            follow: Continue until the output is complete.

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


LINK_FOR = "7d"


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A file that a job left at the grid.

    Attributes:
        path: Its path in the output, such as `plots/a.png`.
        size: Bytes.
        sha256: Checksum, in hexadecimal digits.
        executable: Whether its owner could run it.
    """

    path: str
    size: int
    sha256: str
    executable: bool


@dataclass(frozen=True, slots=True)
class ShareLink:
    """A link to the files of a job. Anybody who has it can read them.

    Attributes:
        url: Its address, to which `/zip`, `/manifest` and others are added. Empty if it was made earlier.
        until: When it ends.
        revoked: Whether it was revoked.
    """

    url: str
    until: datetime | None
    revoked: bool = False

    @property
    def zip_url(self) -> str:
        """Address of all files as one zip archive, for a browser."""
        return f"{self.url}/zip" if self.url else ""


class JobFiles(JobLog):
    """Reads the files of a job. It is a part of `AsyncJob`."""

    async def files(self) -> list[OutputFile]:
        """Return the files that the grid keeps of this job, in the order of their names.

        Returns:
            The files.

        Raises:
            NotFound: The grid has none: the job is not over, left none, or they were deleted.
            AccessDenied: They are private, and were changed, or encrypted with another wallet.
            ServiceError: The services do not answer.
        """
        async with self._open_kept_files() as kept:
            found = (await kept.manifest()).entries
        return [OutputFile(one.path, one.size, one.sha256, bool(one.mode & 0o100)) for one in found]

    async def share(self, for_: Duration = LINK_FOR) -> ShareLink:
        """Make a link to the files of this job. Anybody who has it can read them, without a key.

        Args:
            for_: How long it works, in seconds or as a text such as `7d`; at most 366 days.

        Returns:
            The link. Its address is shown only this once.

        Raises:
            NotFound: The grid has no files of this job.
            InputError: The time is wrong, or the files are private.
        """
        if self._job.definition.has_private_files:
            raise InputError(f"The files of job {self.id} are private, so no link can show them to others.")
        link = await self._files.share(self.id, int(seconds_of(for_) or 0))
        return ShareLink(self._files.url(link.address or ""), moment_of(link.until))

    async def shares(self) -> list[ShareLink]:
        """Return the links to this job's files, oldest first, without their addresses."""
        links = await self._files.links(self.id)
        return [ShareLink("", moment_of(one.until), one.revoked_at is not None) for one in links]

    async def unshare(self) -> None:
        """Revoke all links to the files of this job."""
        await self._files.revoke_links(self.id)

    async def delete_files(self) -> None:
        """Delete the files that the grid keeps of this job, and all links to them."""
        await self._files.delete(self.id)

    @property
    def _files(self) -> FilesClient:
        from deepgrid.services.client import FilesClient

        return FilesClient(self._connection.session.services)

    @asynccontextmanager
    async def _open_kept_files(self) -> AsyncIterator[KeptFiles]:
        from deepgrid.client.files import KeptFiles, file_exchange

        found = await self._connection.patiently(lambda: self._files.of_job(self.id))
        authorities = self._connection.chain.book.authorities
        async with file_exchange(self._files.url(found.address), authorities) as exchange:
            if not self._job.definition.has_private_files:
                yield KeptFiles(exchange, self._connection.settings)
                return
            from deepgrid.client.files.sealed_files import SealedExchange
            from deepgrid.services.signing.signatures import Domain

            wallet, book = self._connection.session.sender.wallet, self._connection.chain.book
            domain = Domain(book.chain_id, book.meta_scheduler)
            yield KeptFiles(SealedExchange(exchange, wallet, domain, self._job), self._connection.settings)

    async def _fetch_kept(self, to: Path, only: str | Sequence[str] | None) -> list[Path] | None:
        """Fetch what the grid keeps of this job; None if it keeps nothing, or its output is known to be elsewhere."""
        output = self._connection.outputs.get(self.id)
        if not self._connection.has_key or (output is not None and output.grid is None):
            return None
        begun = False
        while True:
            kept = None
            try:
                async with self._open_kept_files() as kept:
                    return await self._fetch_from(kept, to, [only] if isinstance(only, str) else only)
            except NotFound as error:
                if kept is not None and kept.has_progress:  # the address has ended: continue with another one
                    begun = True
                    continue
                if output is None and not begun:
                    return None
                raise NoOutput(error.message, next_step="Wait until the job is over.") from None

    async def _fetch_from(self, kept: KeptFiles, to: Path, patterns: Sequence[str] | None) -> list[Path]:
        from deepgrid.client.download.outputs import matches

        manifest = await kept.manifest()
        if patterns is not None and not any(matches(patterns, one.path) for one in manifest.entries):
            raise InputError(f"Job {self.id} left no such file.", next_step=f"See `dps job files {self.id}`.")
        return await kept.fetch(manifest, to, lambda path: matches(patterns, path))
