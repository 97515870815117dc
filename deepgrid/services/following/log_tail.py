"""The shared reader of one followed log.

It reads each new chunk once, keeps the last ones in memory, and wakes the followers. Older output is read from the
database by each follower, in small pages, when the follower is ready for it. So a slow follower costs no memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from bisect import bisect_right
from dataclasses import replace

from sqlalchemy.exc import SQLAlchemyError

from deepgrid.errors import GridError
from deepgrid.lifecycle.job import Job
from deepgrid.services.core import ServiceCore
from deepgrid.services.following.log_news import LogNews
from deepgrid.services.following.stored import Ending, Piece, ending_of, pieces_from, state_of
from deepgrid.services.refusal import Refusal

LOOK_AGAIN_S = 2.0  # for the end of a job that is over, which time decides, and while no news of changes arrives
QUIET_LOOK_S = 60.0  # while news of changes arrives
PACE_S = 0.1  # chunks that arrive faster are read together
PACE_PER_FOLLOWER_S, MOST_PACE_S = 0.001, 0.5  # many followers are woken less often
TAIL_BYTES = 1024 * 1024  # kept in memory
LINGER_S = 5.0  # the reader stays for followers that poll
READ_BYTES = 1024 * 1024
ENDED_TAIL_BYTES = 64 * 1024  # kept after the end, for followers that are behind
FIRST_TAIL_BYTES = 256 * 1024  # read at the start, for followers that come back after a restart
PIECE_COST_BYTES = 256  # of the objects around a piece

logger = logging.getLogger(__name__)


def require_customer(job: Job, reader: str) -> None:
    """Refuse readers other than the job's customer."""
    if job.customer != reader:
        raise Refusal(403, f"only its customer reads the log of job {job.id}")


class LogTail:
    """The state of one followed log, as of the last look at the database.

    `news` is an event that is set at the next change. Take it before you look for pieces, then wait for it.
    """

    def __init__(self, core: ServiceCore, job: Job, pages: asyncio.Semaphore, log_news: LogNews) -> None:
        """`pages` limits how many followers read older output from the database at the same time."""
        self.job = job
        self.over = False
        self.ending = Ending()
        self.news = asyncio.Event()
        self.followers = 0
        self.tail_limit = TAIL_BYTES  # the log_tails may lower it
        self.changed = asyncio.Event()  # set it when something was stored
        self.ready = asyncio.Event()  # after the first look
        self._core = core
        self._pages = pages
        self._log_news = log_news
        self._tail: list[Piece] = []
        self._tail_cost = 0
        self._read_to = 0
        self._told = job.claimed_at  # the claim that the followers know
        self._fault = ""
        self._left_at = asyncio.get_running_loop().time()

    @property
    def is_current(self) -> bool:
        """Whether the reader runs."""
        return not self.over and not self._fault

    # -- for followers -----------------------------------------------------------------

    def require(self, reader: str) -> None:
        """Refuse readers other than the job's customer, and all after a failure or while the service stops."""
        if self._fault:
            raise Refusal(503, self._fault, retry_after_s=2)
        require_customer(self.job, reader)

    def leave(self) -> None:
        """Count one follower fewer."""
        self.followers -= 1
        loop = asyncio.get_running_loop()
        self._left_at = loop.time()
        if not self.followers:
            loop.call_later(LINGER_S, self.changed.set)

    def position(self, offset: int) -> int:
        """Return the offset, where a negative one counts from the present end."""
        return offset if offset >= 0 else max(0, self._read_to + offset)

    async def pieces(self, claimed_at: int, offset: int, most_bytes: int) -> list[Piece]:
        """Return the output of a claim from `offset` on, about `most_bytes` at once. The last piece may be empty and
        final.

        An empty list means that there is nothing yet, or that an earlier claim ends here.
        """
        if claimed_at != self.job.claimed_at:
            return await self._read_stored(claimed_at, offset, most_bytes)
        over, end = self.over, self._read_to  # the tail may grow while the store is read
        found = self._pieces_in_memory(offset, most_bytes)
        if not found and offset < end:
            found = await self._read_stored(claimed_at, offset, most_bytes)
        reached = found[-1].end if found else offset
        if over and (reached >= end or not found):  # clean-up may have deleted it
            last = found.pop() if found else Piece(b"", offset, self._core.clock() * 10**9, True, claimed_at)
            found.append(replace(last, final=True))
        return found

    def _pieces_in_memory(self, offset: int, most_bytes: int) -> list[Piece]:
        """Return the pieces from `offset` on that are in memory."""
        first = bisect_right(self._tail, offset, key=lambda piece: piece.offset) - 1
        if first < 0 or offset >= self._read_to:
            return []
        found, size = list[Piece](), 0
        for piece in self._tail[first : first + 1 + most_bytes // 64]:
            if size >= most_bytes:
                break
            skipped = max(0, offset - piece.offset)
            data = piece.data[skipped : skipped + most_bytes - size]
            found.append(piece if data is piece.data else replace(piece, data=data, offset=piece.offset + skipped))
            size += len(data)
        return found

    async def _read_stored(self, claimed_at: int, offset: int, most_bytes: int) -> list[Piece]:
        async with self._pages, self._core.database.read() as session:
            return (await pieces_from(self._core, session, self.job.id, claimed_at, offset, most_bytes))[1]

    # -- the reader --------------------------------------------------------------------

    async def run(self) -> None:
        """Read until the log is complete, or it had no follower for some seconds."""
        try:
            await self._read()
        except (SQLAlchemyError, GridError) as error:
            logger.error("the log of job %d cannot be read: %s", self.job.id, type(error).__name__)
            self.stop("the service's store does not answer at the moment")
        except Exception:
            logger.exception("unexpected error while the log of job %d was read", self.job.id)
            self.stop("the service cannot read this log at the moment")
        finally:
            self.tail_limit = min(self.tail_limit, ENDED_TAIL_BYTES)
            self.trim()

    async def _read(self) -> None:
        async with self._core.database.read() as session:
            log = await state_of(self._core, session, self.job)
        self._read_to = max(0, log.size - FIRST_TAIL_BYTES)
        await self._look()
        self.ready.set()
        loop = asyncio.get_running_loop()
        while self.is_current and (self.followers or loop.time() - self._left_at < LINGER_S):
            pace_s = min(PACE_S + self.followers * PACE_PER_FOLLOWER_S, MOST_PACE_S)
            await asyncio.sleep(pace_s)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.changed.wait(), self._pause_s() - pace_s)
            self.changed.clear()
            await self._look()

    def _pause_s(self) -> float:
        return QUIET_LOOK_S if self.job.status.hot and self._log_news.complete else LOOK_AGAIN_S

    def stop(self, fault: str) -> None:
        """End all followers with this sentence."""
        self._fault = self._fault or fault
        self.news.set()
        self.ready.set()

    def trim(self) -> None:
        """Forget the oldest pieces above the limit."""
        count = 0
        while self._tail_cost > self.tail_limit and count < len(self._tail):
            self._tail_cost -= len(self._tail[count].data) + PIECE_COST_BYTES
            count += 1
        del self._tail[:count]

    def update(self, job: Job) -> None:
        """Take the job as the chain has it now."""
        if job == self.job:
            return
        if job.claimed_at != self.job.claimed_at:
            self._tail, self._tail_cost, self._read_to = [], 0, 0
        self.job = job
        self.changed.set()

    async def _look(self) -> None:
        job, before, more = self.job, self._read_to, True
        while more:
            async with self._core.database.read() as session:
                state, found = await pieces_from(self._core, session, job.id, job.claimed_at, self._read_to, READ_BYTES)
                more = bool(found) and found[-1].end < state.size
                ending = await ending_of(self._core, session, job, state)
            if job.claimed_at != self.job.claimed_at:  # claimed again meanwhile
                break
            self.ending, self.over = ending, ending.over and not more
            self._remember(found)
        if self.over or self._read_to != before or job.claimed_at != self._told:
            self._told = self.job.claimed_at
            news, self.news = self.news, asyncio.Event()
            news.set()

    def _remember(self, found: list[Piece]) -> None:
        for piece in found:
            self._tail.append(piece)
            self._tail_cost += len(piece.data) + PIECE_COST_BYTES
            self._read_to = piece.end
        self.trim()
