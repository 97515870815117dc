"""One poller serves all waits of a client: 1,000 waiting jobs cost the node two requests per second, not 1,000.

Few jobs are all read at each look. Of many, each look reads the transitions of the grid since the last look, the
jobs that changed, and one page of the others in turn. So a lost event delays a change, and hides none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence

from deepgrid.chain.client import JOBS_PER_CALL, Chain
from deepgrid.client.settings import ClientSettings, pauses_s, wait_until_set
from deepgrid.errors import GridError, InputError, NotFound
from deepgrid.lifecycle.job import Job

logger = logging.getLogger("deepgrid.client")

OVERLAP_BLOCKS = 2  # read again at each look, because the newest blocks may be replaced
LOOKS_PER_HEAD = 30  # looks between two reads of the newest block, which bounds the range of events


class Watch:
    """The jobs that one wait is about, and the newest that was read of each and not taken yet."""

    def __init__(self, job_ids: Iterable[int], say_outage: Callable[[GridError], None] = lambda _: None) -> None:
        self.left = set(job_ids)
        self.knows_outage = False
        self.say_outage = say_outage
        self._news: dict[int, Job | GridError] = {}
        self._any = asyncio.Event()

    def put(self, job_id: int, news: Job | GridError) -> None:
        self._news[job_id] = news
        self._any.set()

    async def take(self) -> Job:
        """Return the next job with news. Raises the error that was put for it."""
        while not self._news:
            self._any.clear()
            await self._any.wait()
        news = self._news.pop(next(iter(self._news)))
        if isinstance(news, GridError):
            raise news
        return news


class JobPoller:
    """Reads the jobs that are waited for. It runs only while there are any."""

    def __init__(self, chain: Chain, settings: ClientSettings) -> None:
        self._chain = chain
        self._settings = settings
        self._watches: set[Watch] = set()
        self._last: dict[int, Job] = {}
        self._turn: list[int] = []  # ids that this round of pages has not read yet
        self._first_block: int | None = None
        self._looks = 0
        self._new = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def until(self, job_ids: Sequence[int], ready: Callable[[Job], bool]) -> AsyncIterator[Job]:
        """Yield each of these jobs once it is `ready`, in the order in which this is seen.

        Outages of the node only delay it. Raises NotFound if the chain has no such job.
        """
        watch = self._add(Watch(job_ids))
        try:
            while watch.left:
                job = await watch.take()
                if job.id in watch.left and ready(job):
                    watch.left.discard(job.id)
                    yield job
        finally:
            self._remove(watch)

    async def versions(
        self, job_id: int, say_outage: Callable[[GridError], None] = lambda _: None
    ) -> AsyncIterator[Job]:
        """Yield the job as it is, and again after each change, until it is over.

        Outages of the node only delay it. `say_outage` gets the first error of each. Raises NotFound.
        """
        watch = self._add(Watch([job_id], say_outage))
        last: Job | None = None
        try:
            while last is None or last.status.hot:
                job = await watch.take()
                if job != last:
                    last = job
                    yield job
        finally:
            self._remove(watch)

    async def close(self) -> None:
        """Stop polling. Other tasks that still wait get an error."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._fail(InputError("This grid was closed while jobs were waited for.", next_step="Open another one."))

    # -- watches -----------------------------------------------------------------------------

    def _add(self, watch: Watch) -> Watch:
        self._watches.add(watch)
        self._turn = [*watch.left, *self._turn]
        for job_id in watch.left & self._last.keys():
            if self._last[job_id].status.cold:  # final: no need to read it again
                watch.put(job_id, self._last[job_id])
        self._new.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="job poller")
        return watch

    def _remove(self, watch: Watch) -> None:
        self._watches.discard(watch)
        self._last = {job_id: self._last[job_id] for job_id in self._ids_to_read() & self._last.keys()}

    def _ids_to_read(self) -> set[int]:
        return set().union(*(watch.left for watch in self._watches))

    def _show(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            self._last[job.id] = job
            for watch in self._watches:
                if job.id in watch.left:
                    watch.put(job.id, job)

    def _tell_outage(self, error: GridError | None) -> None:
        """Report an outage once to each watch. None ends the outage."""
        for watch in self._watches:
            if error is not None and not watch.knows_outage:
                watch.say_outage(error)
            watch.knows_outage = error is not None

    # -- reading -----------------------------------------------------------------------------

    async def _run(self) -> None:
        pause_s = pauses_s(self._settings.longest_pause_s)
        failures = 0
        while self._watches:
            self._new.clear()
            try:
                many = await self._look()
                failures = 0
                self._tell_outage(None)
            except GridError as error:
                if not error.transient:
                    self._fail(error)
                    return
                if failures == 0:
                    logger.warning("cannot read jobs, trying again: %s", error)
                self._tell_outage(error)
                failures += 1
                await asyncio.sleep(pause_s(failures))
                continue
            await wait_until_set(self._new, self._settings.poll_s if many else self._settings.poll_s / 2)

    async def _look(self) -> bool:
        """Read what may have changed. Returns whether there are too many jobs to read all."""
        wanted = self._ids_to_read()
        if len(wanted) <= JOBS_PER_CALL:
            self._first_block = None
            await self._read(sorted(wanted))
            return False
        head_read = self._first_block is None or self._looks % LOOKS_PER_HEAD == 0
        changed = await self._read_changed(head_read) & wanted
        self._turn = [job_id for job_id in self._turn if job_id in wanted] or sorted(wanted)
        unread = [job_id for job_id in self._turn if job_id not in self._last]
        page = unread or ([] if head_read else self._turn[:JOBS_PER_CALL])  # at most two requests per look
        self._turn = [job_id for job_id in self._turn if job_id not in set(page)]
        if changed or page:
            await self._read(sorted(changed | set(page)))
        return True

    async def _read_changed(self, head_read: bool) -> set[int]:
        """Return jobs of the grid with a transition since the last look.

        With `head_read`, the newest block is read too.
        """
        if self._first_block is None or head_read:
            head = (await self._chain.head()).number
            self._first_block = head if self._first_block is None else min(head, self._first_block)
            newest = head
        else:
            newest = self._first_block
        self._looks += 1
        events = await self._chain.events(max(0, self._first_block - OVERLAP_BLOCKS), None, ("JobTransitionEvent",))
        self._first_block = max([newest, *(event.block for event in events)])
        return {event.job_id for event in events if event.job_id}

    async def _read(self, job_ids: Sequence[int]) -> None:
        try:
            self._show(await self._chain.jobs(job_ids))
        except NotFound as error:
            if len(job_ids) > 1:  # one of them: find it
                for job_id in job_ids:
                    await self._read([job_id])
                return
            for watch in self._watches:
                if job_ids[0] in watch.left:
                    watch.put(job_ids[0], error)

    def _fail(self, error: GridError) -> None:
        for watch in self._watches:
            watch.put(next(iter(watch.left), 0), error)
