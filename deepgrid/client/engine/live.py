"""All that is known about a job: read once as a record, or live as events: its states, remarks, output and outages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pydantic_core import from_json

from deepgrid.chain.history import Transition
from deepgrid.client.display.record import JobEnd, JobEvent, JobRecord, QueuePlace, cancel_requested
from deepgrid.client.display.story import steps_of
from deepgrid.client.engine.output import JobOutput
from deepgrid.client.job_values import MoneyEnding, Remark, ViewMessage, datetime_of
from deepgrid.client.settings import patiently
from deepgrid.errors import GridError, ServiceError
from deepgrid.lifecycle.ends import MONEY_ENDING
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from deepgrid.safe_http import UNCOMPRESSED, ExcessiveAnswer, read_answer

if TYPE_CHECKING:
    from deepgrid.client.engine.connection import Connection

SAY_LATE_AFTER_S = 3.0  # a message says that output is late for longer

MAX_ANSWER_BYTES = 16 * 1024 * 1024  # of an oracle: some 100,000 jobs
ORACLE_WITHIN_S = 10.0


async def read_place(connection: Connection, job: Job) -> QueuePlace | None:
    """Return where the job waits. None if it does not wait, or if there is no answer."""
    url = connection.settings.queue_url
    if job.status > JobStatus.META_SCHEDULED or not (url or connection.has_key):
        return None
    pending = job.status is JobStatus.PENDING
    try:
        if url:
            return place_in(await _fetch_places(url), job.id, pending=pending)
        place = await connection.session.services.queue_place(job.id)
    except GridError:
        return None
    if place.position is None or place.length is None or place.status != job.status.name.lower():
        return None  # the job has moved on since
    return QueuePlace(place.position, place.length, pending)


def place_in(answer: bytes, job_id: int, *, pending: bool) -> QueuePlace:
    """Return the place that the answer of a queue oracle gives. Oracles may leave out all but the ids of jobs.

    Raises:
        ServiceError: It is not an answer of a queue oracle.
    """
    try:
        jobs = from_json(answer)  # json.loads of 100,000 brackets ends the process where the recursion limit is high
    except ValueError:
        jobs = None
    if not isinstance(jobs, dict):
        raise ServiceError("The queue oracle does not answer with a JSON object.")
    entry = jobs.get(f"0x{job_id:064x}")
    found = entry if isinstance(entry, dict) else {}
    position, length = found.get("position"), found.get("length")
    if type(position) is int and type(length) is int and 1 <= position <= length:
        return QueuePlace(position, length, pending)
    return QueuePlace(None, len(jobs), pending)


async def _fetch_places(url: str) -> bytes:
    """Return the answer of the oracle. Raises ServiceError."""
    import httpx  # here, because it takes 0.1 s to load

    headers = {"Accept": "application/json", **UNCOMPRESSED}
    try:
        async with (
            httpx.AsyncClient(timeout=ORACLE_WITHIN_S) as http,
            http.stream("GET", url, headers=headers) as response,
        ):
            if response.status_code != httpx.codes.OK:
                raise ServiceError(f"The queue oracle answers with status {response.status_code}.")
            return await read_answer(response, MAX_ANSWER_BYTES)
    except ExcessiveAnswer as error:
        raise ServiceError(f"The answer of the queue oracle {error}.") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ServiceError(f"The queue oracle does not answer ({type(error).__name__}).") from None


async def read_record(connection: Connection, job_id: int) -> JobRecord:
    """Read everything about a job. Raises NotFound or ChainError."""
    chain = connection.chain
    job = await chain.job(job_id)
    history, settlement, remarks, cluster, now, place = await asyncio.gather(
        chain.history(job_id),
        chain.settlement(job_id),
        read_remarks(connection, job_id),
        connection.cluster_names.of(job.provider),
        chain.now(),
        read_place(connection, job),
    )
    return JobRecord(job, cluster, tuple(history), settlement, remarks, now, place)


async def read_remarks(connection: Connection, job_id: int) -> tuple[Remark, ...] | None:
    """Return remarks of the grid on a job, oldest first; None without a key, or if the services do not answer."""
    if not connection.has_key:
        return None
    try:
        notices = await connection.session.services.notices(job_id)
    except GridError:
        return None
    return tuple(
        (MoneyEnding if one.kind == MONEY_ENDING else Remark)(datetime_of(one.at), one.kind, one.text, one.author)
        for one in notices
    )


class LiveView:
    """Collects the news of one job. It remembers the news that it has reported."""

    def __init__(self, connection: Connection, job_id: int) -> None:
        self._connection = connection
        self._job_id = job_id
        self._news: asyncio.Queue[JobEvent | Exception] = asyncio.Queue()
        self._telling = asyncio.Lock()
        self._steps_told = 0
        self._remarks_told = 0
        self._lines_told = 0

    async def events(self) -> AsyncGenerator[JobEvent, None]:
        """Yield the events of the job, from its request until it is over. The last event is a JobEnd.

        Outages of the node and of the services only delay events. Without a key, remarks and output are left out.
        """
        work = asyncio.create_task(self._run(), name=f"live view of job {self._job_id}")
        try:
            while True:
                event = await self._news.get()
                if isinstance(event, Exception):
                    raise event
                yield event
                if isinstance(event, JobEnd):
                    return
                self._news.task_done()  # output is read only as fast as events are used
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def _run(self) -> None:
        try:
            await self._follow()
        except Exception as error:  # the reader gets it
            self._news.put_nowait(error)

    async def _follow(self) -> None:
        tasks = []
        if self._connection.has_key:
            told = (self._tell_output(), self._tell_remarks(), self._tell_places())
            tasks = [asyncio.create_task(one) for one in told]
        try:
            job = await self._tell_states()
            if tasks:
                await self._rest_of(tasks[0])
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await self._tell_end(job)

    # -- states ------------------------------------------------------------------------------

    async def _tell_states(self) -> Job:
        """Print each state until the job is over. Returns the job. `_tell_end` prints the final state."""
        seen: Job | None = None
        async for job in self._connection.poller.versions(self._job_id, self._say_outage):
            if seen is None or (seen.status, seen.assigned_at) != (job.status, job.assigned_at):
                await self._tell_new_states(job)
            if job.has_cancel_request and job.status.hot and not (seen and seen.has_cancel_request):
                self._put(cancel_requested(job))
            seen = job
        assert seen is not None
        return seen

    async def _tell_new_states(self, job: Job) -> None:
        async with self._telling:
            history = await self._connection.reads_forever.history(self._job_id)
            await self._tell_steps([step for step in history if step.after.hot], job)

    async def _tell_steps(self, history: list[Transition], job: Job) -> None:
        names = self._connection.cluster_names
        cluster = await self._connection.patiently(lambda: names.of(job.provider), forever=True)
        for step in steps_of(history, job, cluster)[self._steps_told :]:
            self._put(step)
        self._steps_told = max(self._steps_told, len(history))

    async def _tell_end(self, job: Job) -> None:
        """Print the last remarks, the final state and the bill."""
        if self._connection.has_key:
            await self._tell_new_remarks()
        longest_s, read = self._connection.settings.longest_pause_s, lambda: read_record(self._connection, self._job_id)
        record = await patiently(read, None, longest_s, self._say_outage)
        await self._tell_steps(list(record.history), job)
        self._put(JobEnd(record))

    # -- remarks -----------------------------------------------------------------------------

    async def _tell_remarks(self) -> None:
        while True:
            await self._tell_new_remarks()
            await asyncio.sleep(self._connection.settings.remarks_poll_s)

    async def _tell_new_remarks(self) -> None:
        remarks = await read_remarks(self._connection, self._job_id)
        if remarks is None:
            return  # `_tell_output` reports that the services do not answer
        if len(remarks) > self._remarks_told:  # the state comes before its remarks
            await self._tell_new_states(await self._job())
        for remark in remarks[self._remarks_told :]:
            self._put(remark)
        self._remarks_told = len(remarks)

    async def _tell_places(self) -> None:
        """Print the job's place in the queue whenever it changes, while there are jobs before it."""
        told = None
        while (job := await self._job()).status <= JobStatus.META_SCHEDULED:
            place = await read_place(self._connection, job)
            if place is not None and place.position != 1 and (place.position, place.pending) != told:
                told = (place.position, place.pending)
                await self._tell_new_states(job)
                self._say(place.words)
            await asyncio.sleep(self._connection.settings.queue_poll_s)

    async def _job(self) -> Job:
        return await self._connection.reads_forever.job(self._job_id)

    # -- output ------------------------------------------------------------------------------

    async def _tell_output(self) -> None:
        try:
            async for lines in JobOutput(self._connection, self._job_id, follow=True, say=self._say).lines():
                for line in lines:
                    self._put(line)
                self._lines_told += len(lines)
                await self._news.join()
        except GridError as error:
            self._say(f"The job's output cannot be shown: {error}")

    async def _rest_of(self, output: asyncio.Task[None]) -> None:
        """Wait for the rest of the output of a job that is over, as long as more of it comes."""
        if not (await asyncio.wait({output}, timeout=SAY_LATE_AFTER_S))[0]:
            self._say("The job is over; waiting for the rest of its output.")
        told = -1
        while not output.done() and told != self._lines_told:
            told = self._lines_told
            await asyncio.wait({output}, timeout=self._connection.settings.late_output_s)
        if output.done():
            output.result()

    # -- reporting -----------------------------------------------------------------------------

    def _put(self, event: JobEvent) -> None:
        self._news.put_nowait(event)

    def _say(self, text: str) -> None:
        self._put(ViewMessage(datetime.now(UTC), text))

    def _say_outage(self, error: GridError) -> None:
        self._say(f"waiting for the chain: {error.message}")
