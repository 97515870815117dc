"""Reads the place of a waiting job in the queue: from the services, or from a queue oracle."""

from __future__ import annotations

from pydantic_core import from_json

from deepgrid.client.display.record import QueuePlace
from deepgrid.client.engine.connection import Connection
from deepgrid.errors import GridError, ServiceError
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from deepgrid.plain_answer import UNCOMPRESSED, ExcessiveAnswer, read_answer

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
