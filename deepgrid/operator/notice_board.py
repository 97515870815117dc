"""Notices to customers: those about their waiting jobs, and the board that posts all of them.

Notices are posted in batches, in order. They wait in the store until they are posted, so none is lost.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from deepgrid.condition_log import ConditionLog
from deepgrid.errors import GridError, InputError, NotFound
from deepgrid.operator.store import DueNotice, OperatorStore
from deepgrid.scheduling.market import Waiting
from deepgrid.scheduling.rounds.reasons import line
from deepgrid.services.client import ServicesClient
from deepgrid.services.messages import MAX_NOTICES_AT_ONCE

logger = logging.getLogger(__name__)

LAST_KEPT = 10_000
REPEAT_S = 300.0  # a job that only changes its place in the line gets no more than one notice in this time
LONGEST_RETRY_S = 60.0  # between two attempts while the services are down; the first pause is a second
LATER_S = 60  # a customer is told at once when a reservation moves by more

Notice = tuple[int, str, str]  # job, kind, text


class NoticeBoard:
    """The notices of one operator."""

    def __init__(self, services: ServicesClient, store: OperatorStore, last_job: Callable[[], int]) -> None:
        """`last_job` returns the highest job id that is on the chain."""
        self._services = services
        self._store = store
        self._last_job = last_job
        self._posting = asyncio.Lock()
        self._wanted = asyncio.Event()
        self._silence = ConditionLog(logger, "notices are not posted")
        self._last: dict[tuple[int, str], str] = {}  # texts of `add_once`, by job and kind

    def add(self, notices: Sequence[Notice]) -> None:
        """Keep notices. `post` or `serve` posts them."""
        self._store.add_notices(notices)
        self._wanted.set()

    def add_once(self, job_id: int, kind: str, text: str) -> None:
        """Keep a notice, unless it repeats the last one of this kind on the job."""
        if self._last.pop((job_id, kind), None) != text:
            self.add([(job_id, kind, text)])
        self._last[job_id, kind] = text
        if len(self._last) > LAST_KEPT:
            del self._last[next(iter(self._last))]

    def repeats(self, job_id: int, kind: str, text: str) -> bool:
        """Return whether `add_once` would add nothing."""
        return self._last.get((job_id, kind)) == text

    async def post(self) -> bool:
        """Post what waits, one request per MAX_NOTICES_AT_ONCE. False if something still waits, to be tried again."""
        async with self._posting:
            while due := self._store.due_notices(MAX_NOTICES_AT_ONCE):
                if not await self._post(due):
                    self._wanted.set()
                    return False
            return True

    async def serve(self) -> None:
        """Post what waits, forever. An outage of the services only delays."""
        failures = 0
        self._wanted.set()  # some may wait since the last process
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            if await self.post():
                failures = 0
                continue
            await asyncio.sleep(min(LONGEST_RETRY_S, 2 ** min(failures, 10)))
            failures += 1

    async def _post(self, due: list[DueNotice]) -> bool:
        try:
            await self._services.post_notices([(one.job_id, one.kind, one.text) for one in due])
        except InputError as error:
            logger.error("%d notices are not valid and are dropped: %s", len(due), error.message)
        except GridError as error:
            if isinstance(error, NotFound):  # the services' node is behind, or a reorganisation removed a job
                self._store.drop_notices_after(self._last_job())
            self._silence.note(error.message)
            return False
        self._silence.end()
        self._store.posted(due)
        return True


class WaitingNotices:
    """Makes the notices, and remembers the last one of each job, so that no round repeats it."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[Waiting, str, float]] = {}  # the last notice, its words, monotonic time

    def changed(self, waiting: Sequence[Waiting]) -> list[Notice]:
        """Return notices for jobs with a new reason, and at times for a changed place. Forgets all other jobs.

        A job gets a notice at once when its reservation moves, for example after a top-up of a job before it.
        """
        now, before, notices = time.monotonic(), self._last, []
        self._last = {}
        for one in waiting:
            text = waiting_text(one)
            told, said, at = before.get(one.job_id, (None, "", 0.0))
            if (
                told
                and told.reason == one.reason
                and not _is_later(told, one)
                and (said == text or now - at < REPEAT_S)
            ):
                self._last[one.job_id] = told, said, at
                continue
            self._last[one.job_id] = one, text, now
            notices.append((one.job_id, "waiting", text))
        return notices


def _is_later(told: Waiting, now: Waiting) -> bool:
    """Return whether the job's reservation is later than in its last notice."""
    return now.has_reservation and bool(told.estimated_start) and now.estimated_start > told.estimated_start + LATER_S


def waiting_text(waiting: Waiting) -> str:
    """Return why a job waits, after its place if it has one.

    `3rd in line, 2 jobs of others first; your share of CPUs is 41 %; estimated start 2027-01-15 08:00 UTC at alpha;
    1 cluster is full`
    """
    place = line(waiting)
    return f"{place}; {waiting.reason}" if place else waiting.reason
