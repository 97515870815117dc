"""The queue of the grid: jobs that are assigned or running, and the position of those that wait. It is public.

`GET /v1/queue` is the queue oracle of existing clients. The answers come from one snapshot. It is read from the chain
at most every few seconds, for any number of clients.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import Response

from deepgrid.chain.client import Chain
from deepgrid.errors import ChainError
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.context import JobId, app_state
from deepgrid.services.core import chain_is_silent
from deepgrid.services.messages import QueueAnswer, QueueEntry

FRESH_S = 5  # age at which the snapshot is read again
JOBS_PER_REFRESH = 1000  # jobs that one refresh reads: 20 calls of the contract in one request
NOWHERE = QueueEntry()
PENDING = JobStatus.PENDING.name.lower()

router = APIRouter()


class JobQueue:
    """The jobs that are not over, as of some seconds ago. A job that is over is never read again.

    A new process knows the newest jobs first. With each refresh it looks at some older ones, until it knows all.
    """

    def __init__(self, chain: Chain, clock: Callable[[], float]) -> None:
        self._chain = chain
        self._clock = clock
        self._refreshing = asyncio.Lock()
        self._tried_at: float | None = None
        self._silent = False
        self._hot: dict[int, Job] = {}  # in the order in which they were read, oldest read first
        self._last_id = 0
        self._unread: list[int] = []  # newest last
        self._answer = b"{}"
        self._places: dict[int, QueueEntry] = {}

    async def oracle(self) -> bytes:
        """Return the answer of the queue oracle, as JSON. Refuses with 503."""
        await self._refresh()
        return self._answer

    async def place(self, job_id: int) -> QueueEntry:
        """Return the place of a job; all null if it is over or not known yet. Refuses with 503.

        An unknown job is not refused: that would count against a client whose job is newer than the snapshot.
        """
        await self._refresh()
        return self._places.get(job_id, NOWHERE)

    async def _refresh(self) -> None:
        """Read the chain, unless it was tried in the last seconds. Refuses with 503 if it did not answer."""
        async with self._refreshing:
            now = self._clock()
            if self._tried_at is None or now - self._tried_at >= FRESH_S:
                self._tried_at = now
                self._silent = True
                try:
                    await self._read()
                    self._silent = False
                except ChainError:
                    pass
            if self._silent:
                raise chain_is_silent()

    async def _read(self) -> None:
        last_id = await self._chain.job_count()
        if last_id < self._last_id:  # the chain replaced blocks
            self._hot, self._unread, self._last_id = {}, [], 0
        self._unread += range(self._last_id + 1, last_id + 1)
        self._last_id = last_id
        new = self._unread[-JOBS_PER_REFRESH // 2 :]
        known = list(self._hot)[: JOBS_PER_REFRESH - len(new)]
        read = await self._chain.jobs([*known, *new])
        del self._unread[len(self._unread) - len(new) :]
        for job in read:
            self._hot.pop(job.id, None)
            if job.status.hot:
                self._hot[job.id] = job
        self._places = dict(_places(self._hot.values()))
        assigned = {f"0x{job_id:064x}": place for job_id, place in self._places.items() if place.status != PENDING}
        self._answer = QueueAnswer(assigned).model_dump_json().encode()


def _places(jobs: Iterable[Job]) -> Iterator[tuple[int, QueueEntry]]:
    """Yield the place of each job: pending ones wait together, meta-scheduled ones for their provider's claim."""
    in_order = sorted(jobs, key=lambda job: (job.status, job.assigned_at, job.id))
    lengths = Counter(_line(job) for job in in_order)
    ahead: Counter[str | None] = Counter()
    for job in in_order:
        entry = QueueEntry(status=job.status.name.lower())
        if (line := _line(job)) is not None:
            ahead[line] += 1
            entry = QueueEntry(status=entry.status, position=ahead[line], length=lengths[line])
        yield job.id, entry


def _line(job: Job) -> str | None:
    """Return the job's line: its provider's, "" for all pending jobs, None once it is claimed."""
    if job.status.claimed:
        return None
    return "" if job.status is JobStatus.PENDING else job.provider


Queue = Annotated[JobQueue, Depends(app_state("job_queue"))]


@router.get("/v1/queue")
async def oracle(queue: Queue) -> Response:
    """Return the jobs that are assigned to a cluster or running, by id."""
    return Response(await queue.oracle(), media_type="application/json")


@router.get("/v1/jobs/{job_id}/queue")
async def place(job_id: JobId, queue: Queue) -> QueueEntry:
    """Return the position of one job, which may also be pending."""
    return await queue.place(job_id)
