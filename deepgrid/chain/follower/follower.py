"""Follows the chain and reports which jobs changed. Downtime delays a report but loses no job.

Each new head is only a hint. The event log gives the jobs that changed since the cursor. The contract gives their
state at that same head. The cursor moves only after the caller has taken the report. A process that dies before gets
the report again. If the hashes of known blocks differ from the chain's, the follower goes back to the last common block
and reads all later changes again. It also reads claimed jobs every few seconds, because a cancel request and a top-up
emit no event.

Heads are polled: one small request every `poll_s` works with restarted nodes and proxies. A subscription would need the
same polling as a fallback.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Iterable, Sequence

from deepgrid.chain.client import Chain
from deepgrid.chain.follower.index import JobIndex
from deepgrid.chain.node.node import Block
from deepgrid.condition_log import ConditionLog
from deepgrid.errors import ChainError, NotFound
from deepgrid.lifecycle.job import Job

log = logging.getLogger(__name__)

POLL_S = 0.3
SWEEP_S = 5.0
LONGEST_PAUSE_S = 15.0
LONGEST_LOG_SPAN = 1000  # blocks; beyond that, all hot jobs are read instead of the log
HASHES_PER_STEP = 64
JOBS_PER_SLICE = 1000
ENDS_KEPT = 10_000

Step = tuple[int, Sequence[Block]]  # the common ancestor, and the blocks after it up to the new cursor


class Follower:
    """Keeps `index` at the chain's head while `changes` is iterated."""

    def __init__(
        self,
        chain: Chain,
        index: JobIndex,
        *,
        poll_s: float = POLL_S,
        sweep_s: float = SWEEP_S,
        caught_up: Callable[[Block], None] = lambda _: None,
    ) -> None:
        """`caught_up` is called with the head after each poll that reported all changes up to it."""
        self._caught_up = caught_up
        self._chain = chain
        self._index = index
        self._poll_s = poll_s
        self._sweep_s = sweep_s
        self._swept_at = 0.0
        self._swept = ""  # hash of the head at that time
        self._known: dict[int, Job] = {}  # hot jobs as last reported
        self._ended: dict[int, Job] = {}  # recently ended jobs as reported

    async def changes(self) -> AsyncIterator[list[Job]]:
        """Yield batches of changed jobs, forever.

        The first batch comes when the follower has caught up with the chain. It holds every hot job and every job
        that was hot when last seen. It may be empty; later batches are not. A job that changed several times comes
        once, in its current state.
        """
        started, failures, silence = False, 0, ConditionLog(log, "cannot follow the chain")
        while True:
            try:
                if not started:
                    await self._identify()
                head = await self._chain.head()
                changed, step = await self._step(head, first=not started)
            except (ChainError, NotFound) as error:  # NotFound: the chain went back meanwhile
                failures += 1
                pause_s = min(LONGEST_PAUSE_S, self._poll_s * 2 ** min(failures, 10)) * random.uniform(0.5, 1.0)
                silence.note(error)
                await asyncio.sleep(pause_s)
                continue
            failures = 0
            silence.end()
            if changed or not started:
                started = True
                yield changed
            if step is not None:
                self._index.advance(*step)
            self._caught_up(head)
            if not changed:
                await asyncio.sleep(self._poll_s)

    async def _step(self, head: Block, *, first: bool) -> tuple[list[Job], Step | None]:
        """Read the changes up to `head`; returns the changed jobs and the step of the cursor."""
        known = self._index.blocks()
        sweep = self._is_sweep_due(head)
        if known.get(head.number) == head.hash and max(known) == head.number and not (first or sweep):
            return [], None
        ancestor = await self._common(known, head)
        if ancestor is None:
            return await self._read_everything(head, known), (-1, [head])
        blocks = await self._blocks_after(ancestor, known, head)
        ids = set(self._index.touched_after(ancestor))
        if head.number - ancestor <= LONGEST_LOG_SPAN:
            ids |= await self._in_log(ancestor + 1, head.number)
        else:
            count = await self._chain.job_count(head.number)
            ids.update(self._index.hot(), range(self._index.last_id() + 1, count + 1))
        if first:
            ids.update(self._index.hot())
        if sweep:
            ids.update(self._index.claimed())
        changed = await self._read(ids, head)
        if sweep:
            self._swept, self._swept_at = head.hash, asyncio.get_running_loop().time()
        return changed, (ancestor, blocks)

    async def _identify(self) -> None:
        """Bind the index to this grid and to the current genesis block of its chain."""
        (genesis,) = await self._chain.blocks([0])
        birth = "" if genesis is None else genesis.hash
        self._index.belong_to(f"{self._chain.chain_id} {self._chain.book.meta_scheduler} {birth}")

    # -- position on the chain ---------------------------------------------------------------

    async def _common(self, known: dict[int, str], head: Block) -> int | None:
        """Return the number of the highest known block that is still on the chain; None if there is none."""
        if known.get(head.number) == head.hash:
            return head.number
        if known.get(head.number - 1) == head.parent_hash:
            return head.number - 1
        numbers = sorted((number for number in known if number <= head.number), reverse=True)
        for some in (numbers[:1], numbers[1:]):
            for number, block in zip(some, await self._chain.blocks(some), strict=True):
                if block is not None and block.hash == known[number]:
                    return number
        return None

    async def _blocks_after(self, ancestor: int, known: dict[int, str], head: Block) -> list[Block]:
        """Return the last blocks up to `head`, checked to continue from `ancestor` without a break."""
        if head.number == ancestor:
            return []
        first = max(ancestor + 1, head.number - HASHES_PER_STEP + 1)
        parent = known[ancestor] if first == ancestor + 1 else None
        chained: list[Block] = []
        for block in [*await self._chain.blocks(list(range(first, head.number))), head]:
            if block is None or parent not in (None, block.parent_hash):
                raise ChainError("The chain went back while its blocks were read.")
            chained.append(block)
            parent = block.hash
        return chained

    # -- changes ----------------------------------------------------------------------------

    async def _in_log(self, first: int, last: int) -> set[int]:
        if first > last:
            return set()
        return {event.job_id for event in await self._chain.events(first, last) if event.job_id}

    def _is_sweep_due(self, head: Block) -> bool:
        """Return whether to read all claimed jobs: after the interval, if there was a new block."""
        return head.hash != self._swept and asyncio.get_running_loop().time() - self._swept_at >= self._sweep_s

    async def _read(self, ids: Iterable[int], head: Block) -> list[Job]:
        """Read these jobs at `head` and store them; returns the changed ones."""
        wanted = sorted(ids)
        if not wanted:
            return []
        count = await self._chain.job_count(head.number)
        self._forget([job_id for job_id in wanted if job_id > count])
        jobs = await self._chain.jobs([job_id for job_id in wanted if job_id <= count], head.number)
        changed = [job for job in jobs if self._last_report(job.id) != job]
        self._index.put(jobs, head.number)
        for job in changed:
            self._remember(job)
        return changed

    async def _read_everything(self, head: Block, known: dict[int, str]) -> list[Job]:
        """Read every job: the index is new, or the chain went back beyond all `known` blocks."""
        count = await self._chain.job_count(head.number)
        watched = set(self._index.hot())
        if known:
            log.warning("no known block is on the chain any more, reading all jobs again")
            watched |= {*self._index.touched_after(min(known) - 1), *self._ended}
            watched.update(range(self._index.last_id() + 1, count + 1))
            await self._identify()
        self._forget([job_id for job_id in {*watched, *self._known} if job_id > count])
        news: list[Job] = []
        for start in range(1, count + 1, JOBS_PER_SLICE):
            ids = list(range(start, min(count, start + JOBS_PER_SLICE - 1) + 1))
            jobs = await self._chain.jobs(ids, head.number)
            news += [job for job in jobs if job.status.hot or job.id in watched]
            self._index.put((job for job in jobs if job.id not in watched), head.number)
        self._index.put(news, head.number)
        changed = [job for job in news if self._last_report(job.id) != job]
        for job in changed:
            self._remember(job)
        return changed

    def _last_report(self, job_id: int) -> Job | None:
        return self._known.get(job_id) or self._ended.get(job_id)

    def _remember(self, job: Job) -> None:
        self._forget_report(job.id)
        (self._known if job.status.hot else self._ended)[job.id] = job
        if len(self._ended) > ENDS_KEPT:
            del self._ended[next(iter(self._ended))]

    def _forget(self, job_ids: list[int]) -> None:
        """Forget jobs that a reorganisation removed."""
        self._index.drop(job_ids)
        for job_id in job_ids:
            self._forget_report(job_id)

    def _forget_report(self, job_id: int) -> None:
        self._known.pop(job_id, None)
        self._ended.pop(job_id, None)
