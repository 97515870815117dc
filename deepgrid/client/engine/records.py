"""Reads all that is known about a job: on chain, the remarks of the grid, and its place in a queue."""

from __future__ import annotations

import asyncio

from pydantic_core import from_json

from deepgrid.client.display.record import JobRecord, QueuePlace
from deepgrid.client.engine.connection import Connection
from deepgrid.client.values.returned import Remark, datetime_of
from deepgrid.errors import GridError, ServiceError
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from deepgrid.safe_http import UNCOMPRESSED, ExcessiveAnswer, read_answer

MAX_ANSWER_BYTES = 16 * 1024 * 1024  # of an oracle: some 100,000 jobs
ORACLE_WITHIN_S = 10.0


async def read_place(connection: Connection, job: Job) -> QueuePlace | None:
    """Where the job waits. None if it does not wait, or if there is no answer."""
    url = connection.settings.queue_url
    if job.status > JobStatus.META_SCHEDULED or not (url or connection.has_key):
        return None
    pending = job.status is JobStatus.PENDING
    try:
        if url:
            return place_in(await _fetched(url), job.id, pending=pending)
        place = await connection.session.services.queue_place(job.id)
    except GridError:
        return None
    if place.position is None or place.length is None or place.status != job.status.name.lower():
        return None  # the job has moved on since
    return QueuePlace(place.position, place.length, pending)


def place_in(answer: bytes, job_id: int, *, pending: bool) -> QueuePlace:
    """The place that the answer of a queue oracle gives. Oracles may leave out all but the ids of jobs.

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


async def _fetched(url: str) -> bytes:
    """The answer of the oracle. Raises ServiceError."""
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
    """Remarks of the grid on a job, oldest first; None without a key, or if the services do not answer."""
    if not connection.has_key:
        return None
    try:
        notices = await connection.session.services.notices(job_id)
    except GridError:
        return None
    return tuple(Remark(datetime_of(one.at), one.kind, one.text, one.author) for one in notices)
