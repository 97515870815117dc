"""The jobs of one customer as a list that is read in pages, as `AsyncGrid.jobs` returns it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self

from deepgrid.chain.client import JOBS_PER_CALL
from deepgrid.client.display.data_frames import JOB, frame_of
from deepgrid.client.display.html import MOST_ROWS, jobs_html
from deepgrid.client.job import AsyncJob
from deepgrid.errors import InputError
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus

if TYPE_CHECKING:
    import pandas as pd

    from deepgrid.client.engine.connection import Connection


class Opening(Protocol):
    """Connects to the grid, and returns the definitions that are looked for; None for all."""

    async def __call__(self) -> tuple[Connection, Collection[str] | None]: ...


@dataclass
class Matches:
    """Finds the jobs that fit the filters, newest first. It keeps their numbers, and no job.

    Attributes:
        opening: Connects, and reads which definitions have the tags.
        customer: Address of the customer.
        statuses: Wanted states; None for all.
        since_s: Earliest time of the request, in unix seconds.
        numbers: Numbers of the jobs that were found so far.
        ended: Whether all were found.
    """

    opening: Opening
    customer: str
    statuses: Collection[JobStatus] | None = None
    since_s: int = 0
    numbers: list[int] = field(default_factory=list)
    ended: bool = False
    _unread: list[int] | None = None  # oldest first
    _connection: Connection | None = None
    _definitions: Collection[str] | None = None
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def more(self) -> tuple[int, list[AsyncJob]]:
        """Read the next page. Returns the jobs that fit, and how many were found before them."""
        async with self._reading:
            if self._unread is None:
                self._connection, self._definitions = await self.opening()
                self._unread = await self._connection.reads.jobs_by_customer(self.customer)
                if self._definitions is None and self.statuses is None and not self.since_s:
                    self.numbers, self._unread, self.ended = self._unread[::-1], [], True
                    return 0, []
            page, before = self._unread[-JOBS_PER_CALL:][::-1], len(self.numbers)
            jobs = await self.read(page) if page else []
            old = next((at for at, job in enumerate(jobs) if job.on_chain.submitted_at < self.since_s), None)
            found = [job for job in jobs[:old] if self._fits(job.on_chain)]
            del self._unread[len(self._unread) - len(page) :]
            self.ended = old is not None or not self._unread
            self.numbers += [job.id for job in found]
            return before, found

    async def read(self, numbers: Sequence[int]) -> list[AsyncJob]:
        """Read jobs, with the names of their clusters."""
        assert self._connection is not None
        names = self._connection.cluster_names
        jobs = await self._connection.reads.jobs(list(numbers))
        return [AsyncJob(self._connection, job, cluster=await names.of(job.provider)) for job in jobs]

    def _fits(self, job: Job) -> bool:
        is_marked = self._definitions is None or job.definition.definition_hash in self._definitions
        return is_marked and (self.statuses is None or job.status in self.statuses)


class AsyncJobs:
    """The jobs of one customer, newest first. `AsyncGrid.jobs` makes it.

    Nothing is read before it is asked for. Only numbers of jobs are kept, so a long history needs little memory. The
    first reading decides which jobs are in it; call `AsyncGrid.jobs` again to find newer ones.
    """

    def __init__(self, matches: Matches, start: int = 0, stop: int | None = None) -> None:
        self._matches = matches
        self._start = start
        self._stop = stop

    async def __aiter__(self) -> AsyncIterator[AsyncJob]:
        """Yield the jobs. They are read in pages, as the caller asks for them."""
        at, matches = self._start, self._matches
        while self._stop is None or at < self._stop:
            if at < len(matches.numbers):
                known = matches.numbers[at : self._stop][:JOBS_PER_CALL]
                for job in await matches.read(known):
                    yield job
                at += len(known)
            elif matches.ended:
                return
            else:
                before, found = await matches.more()
                if before > at:  # another reader was faster
                    continue
                for job in found[at - before : None if self._stop is None else self._stop - before]:
                    at += 1
                    yield job

    def __getitem__(self, part: slice) -> Self:
        """Return a part, such as `jobs[:20]`. Nothing is read.

        Args:
            part: Its bounds, from the newest job on, and no step.

        Returns:
            The jobs of this part.

        Raises:
            InputError: A bound is negative, or there is a step.
        """
        start, stop = part.start or 0, part.stop
        if start < 0 or (stop is not None and stop < 0) or part.step not in (None, 1):
            raise InputError("A part of the jobs needs bounds from the newest job on, and no step.")
        first = self._start + start
        ends = [one for one in (self._stop, None if stop is None else self._start + stop) if one is not None]
        return type(self)(self._matches, first, min(ends) if ends else None)

    async def count(self) -> int:
        """Count the jobs. With a filter this reads all of them.

        Returns:
            Their number.

        Raises:
            GridError: The node or, with tags, the services do not answer.
        """
        while not self._matches.ended and (self._stop is None or len(self._matches.numbers) < self._stop):
            await self._matches.more()
        return max(0, len(self._matches.numbers[: self._stop]) - self._start)

    async def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per job. It needs pandas, which the extra `bills` installs.

        Returns:
            The table.

        Raises:
            ConfigurationError: pandas is not installed.
            GridError: The node or, with tags, the services do not answer.
        """
        return frame_of([job async for job in self], JOB)

    # -- what only the sync class has ----------------------------------------------------------

    async def _length(self) -> int:
        return await self.count()

    async def _item(self, at: int | slice) -> Any:
        """Return one job, or a part such as `jobs[:20]`."""
        if isinstance(at, slice):
            if min(at.start or 0, at.stop or 0) < 0:
                at = slice(*at.indices(await self.count())[:2], at.step)
            return self[at]
        place = at if at >= 0 else at + await self.count()
        async for job in self[place : place + 1] if place >= 0 else self[:0]:
            return job
        raise IndexError(f"There is no job at place {at}.")

    async def _html(self) -> str:
        shown = [job async for job in self[:MOST_ROWS]]
        total = await self.count() if self._matches.ended or len(shown) < MOST_ROWS else None
        known = f"{len(shown)} newest" if total is None else f"{len(shown)} of {total}"
        return jobs_html(shown, f"{known} jobs")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._matches.numbers[self._start : self._stop])} found so far)"
