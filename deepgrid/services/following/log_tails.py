"""The followed logs of this process, and who may follow them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from functools import partial

from deepgrid.lifecycle.job import Job
from deepgrid.services.core import ServiceCore
from deepgrid.services.following.log_news import LogNews
from deepgrid.services.following.log_tail import TAIL_BYTES, LogTail, require_customer
from deepgrid.services.following.stored import Piece
from deepgrid.services.refusal import Refusal

TAILS_BYTES = 64 * 1024 * 1024  # of all logs, in memory
PAGE_BYTES = 128 * 1024  # of older output, per follower
PAGES_AT_ONCE = 4  # reads of older output; leaves connections of the database's pool to others
ASK_CHAIN_S = 2.0  # one read for all followed jobs, and for each that may still come
STOPPING = "the service stops"

logger = logging.getLogger(__name__)


class LogTails:
    """One `LogTail` per followed log. A tail starts with the first follower and ends some seconds after the last."""

    def __init__(self, core: ServiceCore) -> None:
        self._pages = asyncio.Semaphore(PAGES_AT_ONCE)
        self._core = core
        self._tails: dict[int, LogTail] = {}
        self._tasks: dict[LogTail, asyncio.Task[None]] = {}
        self._asked: dict[int, asyncio.Task[Job]] = {}
        self._stopped = False
        self.news = LogNews(core.database)
        self._background: list[asyncio.Task[None]] = []

    @property
    def all_followers(self) -> int:
        """How many follow a log."""
        return sum(tail.followers for tail in self._tasks)

    @property
    def followed_logs(self) -> int:
        """How many logs have a reader."""
        return len(self._tasks)

    def announce(self, job_id: int) -> None:
        """Wake the log's reader in this process: output was stored."""
        if job_id in self._tails:
            self._tails[job_id].changed.set()

    def announce_all(self) -> None:
        """Wake all readers."""
        for tail in self._tasks:
            tail.changed.set()

    async def follow(self, job_id: int, reader: str, offset: int = 0) -> AsyncIterator[Piece]:
        """Yield the output of a job from `offset` on, as it arrives, for the job's customer.

        Ends when the log is complete: the last piece is final, and may be empty. When the job is claimed again, the
        rest of the earlier claim comes first, then the output of the new claim from its offset 0 on. Nothing is read
        ahead for a follower that takes its time.

        `reader` is the authenticated address of the follower. A negative `offset` counts from the present end. Refuses
        with 403 if the reader is not the job's customer, with 404 if there is no such job, and with 503 (try again) if
        the chain or the store does not answer or the service stops.
        """
        async with self.join(job_id, reader) as tail:
            claimed_at = tail.job.claimed_at
            offset = tail.position(offset)
            while True:
                news = tail.news
                tail.require(reader)
                pieces = await tail.pieces(claimed_at, offset, PAGE_BYTES)
                for piece in pieces:
                    yield piece
                    offset = piece.end
                    if piece.final:
                        return
                if pieces:
                    continue
                if tail.job.claimed_at != claimed_at:
                    claimed_at, offset = tail.job.claimed_at, 0
                else:
                    await news.wait()

    @contextlib.contextmanager
    def counted(self, job_id: int) -> Iterator[None]:
        """Count a follower. Refuses with 429 if there are too many."""
        admission = self._core.admission
        with admission.followers_by_job.hold(str(job_id)) as held:
            if not held:
                raise Refusal(429, f"too many requests wait for the output of job {job_id}", retry_after_s=2)
            yield

    @contextlib.asynccontextmanager
    async def join(self, job_id: int, reader: str) -> AsyncIterator[LogTail]:
        """Yield the tail of a job's log, for its customer.

        Refuses with 403 other readers, with 404 when there is no such job, and with 503 when the chain or the store
        is silent or the service stops.
        """
        tail = self._tails.get(job_id)
        if tail is None:
            job = await self.job(job_id)
            require_customer(job, reader)
            tail = self._tails.get(job_id) or self._start(job)
        tail.followers += 1
        try:
            await tail.ready.wait()
            tail.require(reader)
            yield tail
        finally:
            tail.leave()

    def stop(self) -> None:
        """End all followers now. New ones are refused."""
        self._stopped = True
        for tail in list(self._tasks):
            tail.stop(STOPPING)

    async def close(self) -> None:
        """Stop, and wait for the readers' end. Call it before the database is closed."""
        self.stop()
        tasks = [*self._tasks.values(), *self._asked.values(), *self._background]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def job(self, job_id: int) -> Job:
        """Return the job as the chain has it. Simultaneous calls for one job share one answer."""
        asked = self._asked.get(job_id)
        if asked is None:
            asked = self._asked[job_id] = asyncio.create_task(self._core.job(job_id))
            asked.add_done_callback(partial(self._answered, job_id))
        return await asyncio.shield(asked)

    def _answered(self, job_id: int, asked: asyncio.Task[Job]) -> None:
        del self._asked[job_id]
        if not asked.cancelled():
            asked.exception()  # marks it as seen: the callers may be gone

    def _start(self, job: Job) -> LogTail:
        if self._stopped:
            raise Refusal(503, STOPPING, retry_after_s=2)
        if not self._background:
            hearing = self.news.hear(self.announce, self.announce_all)
            self._background = [asyncio.create_task(hearing), asyncio.create_task(self._ask_chain())]
        tail = self._tails[job.id] = LogTail(self._core, job, self._pages, self.news)
        self._tasks[tail] = asyncio.create_task(self._run(tail))
        self._share()
        return tail

    async def _run(self, tail: LogTail) -> None:
        try:
            await tail.run()
        finally:
            if self._tails.get(tail.job.id) is tail:
                del self._tails[tail.job.id]
            del self._tasks[tail]

    async def _ask_chain(self) -> None:
        """Ask for the followed jobs again and again. A silent chain is asked again later."""
        while True:
            await asyncio.sleep(ASK_CHAIN_S)
            try:
                await self._update([tail for tail in self._tasks if tail.is_current])
            except Refusal:
                continue
            except Exception:
                logger.exception("unexpected error while the followed jobs were read")

    async def _update(self, tails: list[LogTail]) -> None:
        try:
            jobs = await self._core.jobs([tail.job.id for tail in tails]) if tails else []
        except Refusal as refusal:
            if refusal.status != 404:
                raise
            if len(tails) == 1:  # a reorganisation removed the job
                tails[0].stop(f"there is no job {tails[0].job.id}")
                return
            middle = len(tails) // 2
            await self._update(tails[:middle])
            await self._update(tails[middle:])
            return
        for tail, job in zip(tails, jobs, strict=True):
            tail.update(job)

    def _share(self) -> None:
        """Divide the memory for output among the tails."""
        limit = min(TAIL_BYTES, TAILS_BYTES // len(self._tasks))
        for tail in self._tasks:
            tail.tail_limit = limit
            tail.trim()
