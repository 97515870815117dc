"""Requests the jobs of a sweep as places become free, and follows them to their ends.

Never more than `at_once` of its jobs are hot, and never more credits than the budget are locked for them: a place is
free only when the chain says that a job is over. Under a key that the caller chose, what exists is looked up on chain
before every request. So a sweep that was interrupted, or that runs twice at the same time, requests nothing twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from deepgrid.client.engine.connection import Connection
from deepgrid.client.engine.earlier_job import check_earlier
from deepgrid.client.engine.idempotency import Use, key_lock
from deepgrid.client.engine.submission import note, record_use
from deepgrid.client.job import AsyncJob
from deepgrid.client.job_values import TOO_FEW_CREDITS
from deepgrid.client.settings import pauses_s
from deepgrid.client.sweep.free_places import Capacity
from deepgrid.client.sweep.plan import Entry, Plan
from deepgrid.client.sweep.summary import Unsubmitted
from deepgrid.errors import AccessDenied, ChainError, ContractError, GridError, InputError, ServiceError
from deepgrid.lifecycle.ends import was_not_the_programs
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus

logger = logging.getLogger("deepgrid.client")

MOST_FAILURES = 3  # failed requests in a row; the chain is read again after each


@dataclass(frozen=True, slots=True)
class SweepLimits:
    """Limits of a sweep.

    Attributes:
        at_once: Jobs that wait or run at the same time.
        most_wei: Wei of credits that are locked at the same time; None for no limit.
        pack: Parameter sets per job.
        retries: How often a job is retried after a failure that its program did not cause.
        approve: Whether a request may raise the allowance, to exactly what it locks.
    """

    at_once: int
    most_wei: int | None = None
    pack: int = 1
    retries: int = 0
    approve: bool = True


class Sweep:
    """The jobs of one plan. `start` begins.

    Attributes:
        plan: The plan.
        limits: Its limits.
        entries: All jobs of the sweep, in order.
        ended: Those that are over, in the order in which this was seen.
        unnoted: Number of requested jobs whose place, tags and note the services do not keep.
        error: Why no more jobs are requested; None while all is well.
    """

    def __init__(self, connection: Connection, plan: Plan, entries: Sequence[Entry], limits: SweepLimits) -> None:
        self.connection = connection
        self.plan = plan
        self.limits = limits
        self.entries = entries
        self.ended: list[Entry] = []
        self.unnoted = 0
        self.error: GridError | None = None
        for entry in entries:
            entry.retries_left = limits.retries
        self._missing = {entry.definition_hash: entry for entry in entries}
        self._hot: dict[int, Entry] = {}
        self._look_up = plan.named
        self._capacity = Capacity(connection, plan.credits_wei, limits.at_once, limits.most_wei)
        self._requesting = asyncio.Lock()  # held while jobs are requested or looked up, not while services answer
        self._change = asyncio.Event()
        self._over = False
        self._followers: asyncio.TaskGroup

    def start(self) -> None:
        """Begin to request jobs, until all were requested or the connection is closed."""
        self._in_background(self._run(), "sweep")

    @property
    def stuck(self) -> GridError | None:
        """The error that keeps all open entries from ending; None while some may still end."""
        return self.error if self._over or not self._hot else None

    @property
    def change(self) -> asyncio.Event:
        """Is set at the next change of `ended` or `error`."""
        return self._change

    def drop(self, entries: Iterable[Entry]) -> asyncio.Task[None]:
        """Request no jobs for these entries from now on. The task ends when each has a job or is given up."""
        for entry in (dropped := list(entries)):
            entry.dropped, entry.retries_left = True, 0
        return self._in_background(self._drop(dropped), "dropping")

    def _in_background(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self.connection.background.add(task)
        task.add_done_callback(self.connection.background.discard)
        return task

    # -- requesting --------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            async with asyncio.TaskGroup() as self._followers:
                await self._request_all()
        except BaseExceptionGroup as errors:
            known, others = errors.split(GridError)
            if others is not None:
                raise
            assert known is not None
            self._stop(_first(known))
        finally:
            if len(self.ended) < len(self.entries):
                self.error = self.error or GridError("The sweep was stopped.", next_step="Continue it with its key.")
            self._over = True
            self._changed()

    def _stop(self, error: GridError) -> None:
        logger.warning("the sweep requests no more jobs: %s", error)
        self.error = error
        self._changed()

    async def _request_all(self) -> None:
        failures = 0
        pause_s = pauses_s(self.connection.settings.longest_pause_s)
        try:
            if self._look_up:
                async with self._requesting:
                    await self._adopt_earlier()
            while self._missing or (self.limits.retries and self._hot):
                if not (wanted := self._missing_entries()):  # a job that fails may be requested again
                    await self._change.wait()
                    continue
                count = await self._capacity.wait(len(wanted), self._hot, lambda: self._change)
                try:
                    await self._request(count)
                    failures = 0
                except ChainError as error:
                    failures += 1
                    if failures == MOST_FAILURES:
                        raise
                    logger.warning("a request of jobs failed, looking for them on chain: %s", error)
                    await asyncio.sleep(pause_s(failures))
        except GridError as error:  # the jobs that were requested are followed on
            self._stop(error)

    async def _request(self, count: int) -> None:
        key, wanted = self.plan.key, self.plan.named
        async with key_lock(key.folder if wanted else None, key.id, None):
            async with self._requesting:
                if self._look_up and await self._adopt_earlier():
                    return  # another process requested some: count the places again
                self._look_up = wanted
            await self._give_up_after_failure()
            stored = await self._store(self._missing_entries()[:count])
            async with self._requesting:
                batch = [entry for entry in stored if not entry.dropped]
                if not batch:
                    return
                if wanted:
                    record_use(self.connection, key, Use(self.plan.fingerprint, batch[0].definition_hash))
                await self._send(batch)

    def _missing_entries(self) -> list[Entry]:
        return [entry for entry in self._missing.values() if not entry.dropped]

    async def _send(self, batch: Sequence[Entry]) -> None:
        orders = [(self.plan.order(entry), entry.definition_hash) for entry in batch]
        try:
            async with self.connection.spending:
                job_ids = await self.connection.session.request_all(orders, approve=self.limits.approve)
            await self._adopt(batch, await self._read(job_ids))
        except ContractError as error:
            if error.name == TOO_FEW_CREDITS:
                return  # something else has locked them: wait for a place again
            raise
        except ChainError:
            self._look_up = True  # they may have been requested
            raise

    async def _drop(self, entries: Sequence[Entry]) -> None:
        async with self._requesting:
            if self._look_up and not self._over and any(entry.definition_hash in self._missing for entry in entries):
                await self._adopt_earlier()
            for entry in entries:
                self._give_up(entry, InputError("It was cancelled before it was requested."), JobStatus.CANCELLED)

    async def _give_up_after_failure(self) -> None:
        """Request no more jobs if the job that they wait for ended without having finished."""
        try:
            await check_earlier(self.connection, [self.plan.terms])
        except InputError as error:
            for entry in list(self._missing.values()):
                self._give_up(entry, error, JobStatus.CANCELLED)

    async def _store(self, entries: Sequence[Entry]) -> list[Entry]:
        """Store the definitions. Returns the entries whose definitions are stored."""
        stored = await asyncio.gather(*(self._store_one(entry) for entry in entries))
        batch = [entry for entry, there in zip(entries, stored, strict=True) if there]
        await self._note(batch)
        return batch

    async def _note(self, entries: Sequence[Entry]) -> None:
        """Note the places of the entries at the services, which show the sweep as a group. Without it, jobs run too."""
        try:
            await note(self.connection, {entry.definition_hash: self.plan.mark(entry) for entry in entries})
        except GridError as error:
            self.unnoted += len(entries)
            logger.warning("the places of %d jobs in their sweep are not kept: %s", len(entries), error)

    async def _store_one(self, entry: Entry) -> bool:
        session, order = self.connection.session, self.plan.order(entry)
        async with self.connection.uploads:
            try:
                await self.connection.patiently(lambda: session.store(order, entry.salt), forever=True)
                return True
            except (InputError, ServiceError) as error:
                if not isinstance(error, AccessDenied) or await self._capacity.affordable():
                    self._give_up(entry, error, JobStatus.FAILED)
                return False  # else the service waits for credits, as the sweep does

    def _give_up(self, entry: Entry, error: GridError, status: JobStatus) -> None:
        if self._missing.pop(entry.definition_hash, None) is None:
            return  # it has a job, or was dropped meanwhile
        entry.unsubmitted = Unsubmitted(entry.parameters, error, status)
        self.ended.append(entry)
        self._changed()

    # -- jobs that exist ---------------------------------------------------------------------

    async def _adopt_earlier(self) -> bool:
        """Take over the jobs that exist on chain. Returns whether there were any."""
        requested = self.connection.requested
        await self.connection.refresh_requested(forever=True)
        found = {name: job_id for name in self._missing if (job_id := requested.find(name)) is not None}
        jobs = await self._read(list(found.values()))
        if any(job.definition.definition_hash != name for name, job in zip(found, jobs, strict=True)):
            requested.forget()
            return await self._adopt_earlier()
        await self._adopt([self._missing[name] for name in found], jobs)
        return bool(found)

    async def _read(self, job_ids: Sequence[int]) -> list[Job]:
        return await self.connection.reads_forever.jobs(job_ids) if job_ids else []

    async def _adopt(self, entries: Sequence[Entry], jobs: Sequence[Job]) -> None:
        for entry, job in zip(entries, jobs, strict=True):
            del self._missing[entry.definition_hash]
            entry.job = AsyncJob(self.connection, job, parameters=entry.parameters)
            self.connection.outputs[job.id] = entry.definition.output
            self._hot[job.id] = entry
        hot = [job.id for job in jobs if job.status.hot]
        for job in jobs:
            if job.status.cold:
                await self._end(job)
        if hot:
            self._followers.create_task(self._follow(hot))

    async def _follow(self, job_ids: Sequence[int]) -> None:
        async for job in self.connection.poller.until(job_ids, lambda job: job.status.cold):
            await self._end(job)

    async def _end(self, job: Job) -> None:
        names = self.connection.cluster_names
        cluster = await self.connection.patiently(lambda: names.of(job.provider), forever=True)
        entry = self._hot.pop(job.id)
        assert entry.job is not None
        entry.job._update(job, cluster)
        if entry.retries_left and was_not_the_programs(job.status, job.last_error):
            logger.warning("job %d failed, running it again: %s", job.id, job.last_error)
            self.plan.repeat(entry)
            self._missing[entry.definition_hash] = entry
        else:
            self.ended.append(entry)
        self._changed()

    def _changed(self) -> None:
        change, self._change = self._change, asyncio.Event()
        change.set()


def _first(errors: BaseExceptionGroup[GridError]) -> GridError:
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, GridError)
    return error
