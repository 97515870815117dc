"""The app's data on its customer: balances and jobs, read again every two seconds, and whether the grid answers. The
ids of many jobs are read once, then the newest page, then the visible ones. Jobs that are over never change and are not
read again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from deepgrid.client.settings import wait_until_set
from deepgrid.errors import GridError

if TYPE_CHECKING:
    from deepgrid.client.job import AsyncJob
    from deepgrid.tui.overview import Account, ContractTerms, Overview

POLL_S = 2.0
PAGE = 50


class LiveData:
    """The newest that is known. `changed` is called after each change.

    Attributes:
        account: Balances; None until they were read.
        terms: The grid's terms; None until they were read.
        ids: Ids of all jobs, newest first; None until they were read.
        jobs: The jobs that were read, by id.
        marks: Tags, sweeps and parameters of jobs as texts, by the hash of their definition; read for a filter.
        outage: The error of an outage; empty while the grid answers.
        outage_since: When the outage began, in unix seconds.
    """

    def __init__(self, overview: Overview, changed: Callable[[], None], now: Callable[[], float] = time.time) -> None:
        self.overview = overview
        self.now = now
        self.account: Account | None = None
        self.terms: ContractTerms | None = None
        self.ids: list[int] | None = None
        self.jobs: dict[int, AsyncJob] = {}
        self.marks: dict[str, str] = {}
        self.outage = ""
        self.outage_since = 0.0
        self._changed = changed
        self._wanted: list[int] = []
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Read forever. Outages delay it."""
        while True:
            self._wake.clear()
            try:
                await self._look()
                self.outage = ""
            except GridError as error:
                self.outage_since = self.outage_since if self.outage else self.now()
                self.outage = error.message
            self._changed()
            await wait_until_set(self._wake, POLL_S)

    def refresh(self) -> None:
        """Read now, for example because a transaction was mined."""
        self._wake.set()

    def want(self, job_ids: Iterable[int]) -> None:
        """Read these jobs next, as they are on the screen."""
        missing = [job_id for job_id in job_ids if job_id not in self.jobs]
        if missing and missing != self._wanted:
            self._wanted = missing
            self._wake.set()

    async def read_all(self) -> None:
        """Read all jobs, page after page, for a filter. Raises GridError."""
        while missing := [job_id for job_id in self.ids or [] if job_id not in self.jobs][:PAGE]:
            await self._read(missing)
            self._changed()
            await asyncio.sleep(0)

    async def read_marks(self) -> None:
        """Read tags, sweeps and parameters, for a filter. Raises GridError."""
        self.marks = await self.overview.marks()
        self._changed()

    async def _look(self) -> None:
        known = self.ids or []
        self.account, new = await asyncio.gather(self.overview.account(), self.overview.ids(len(known)))
        if self.terms is None:
            self.terms = await self.overview.terms()
        ids = [*reversed(new), *known]
        missing = [job_id for job_id in ids[:PAGE] if job_id not in self.jobs]
        await self._read([*missing, *self._wanted][:PAGE])
        self.ids = ids
        await self._read_hot(skip=set(missing) | set(self._wanted))
        self._wanted = [job_id for job_id in self._wanted if job_id not in self.jobs]

    async def _read_hot(self, skip: set[int]) -> None:
        """Read the jobs that may have changed: one page at each look, those that were read last at the end."""
        hot = [job for job in self.jobs.values() if not job.over and job.id not in skip]
        page = [job.id for job in hot[:PAGE]]
        for job_id in page:
            self.jobs[job_id] = self.jobs.pop(job_id)  # to the end of the round
        await self._read(page)

    async def _read(self, job_ids: Sequence[int]) -> None:
        if job_ids:
            for job in await self.overview.jobs(job_ids):
                self.jobs[job.id] = job
