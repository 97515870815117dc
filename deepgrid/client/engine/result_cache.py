"""Jobs that are not run again, because an equal one of the same customer has finished (`cache=True`).

An equal job has the same definition on chain, under a salt that the customer's key gives. So it is found from any
machine. Inputs that may change under the same name, such as an image without a digest, are refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from deepgrid.errors import InputError, NotFound
from deepgrid.lifecycle.states import JobStatus

if TYPE_CHECKING:
    from deepgrid.client.engine.connection import Connection
    from deepgrid.client.engine.idempotency import IdempotencyKey
    from deepgrid.client.order import Order
    from deepgrid.lifecycle.job import Job

MUTABLE = ("http", "s3")
LOG_ARRIVES_WITHIN_S = 3600  # after the end of its job


def check_cacheable(definition: bytes) -> None:
    """Raise InputError if something in a definition (canonical JSON) may change while its name stays."""
    values = json.loads(definition)
    for kind in MUTABLE:
        if (values.get("input") or {}).get(kind):
            raise _refusal(f"the input by {kind} may change", "Send the files with the job")
        if (values.get("output") or {}).get(kind):
            raise _refusal(f"the output goes to a place of yours by {kind}", "Write `output: {grid: {}}`")
    for container in _containers(values):
        image = str(container.get("image", ""))
        if container.get("deepsquareHosted") or not ("@sha256:" in image or image.startswith("/input/")):
            raise _refusal(f"the image {image} may change", "Name it with its digest (`@sha256:`)")


def _refusal(why: str, remedy: str) -> InputError:
    return InputError(
        f"The result cannot be taken from an earlier job: {why}.",
        next_step=f"{remedy}, or submit it without the cache.",
    )


def _containers(values: Any) -> Iterator[dict[str, Any]]:
    """Yield all containers in a definition."""
    if isinstance(values, list):
        for one in values:
            yield from _containers(one)
    if not isinstance(values, dict):
        return
    for name, value in values.items():
        if name == "container" and isinstance(value, dict):
            yield value
        else:
            yield from _containers(value)


def cache_key(connection: Connection) -> IdempotencyKey:
    """Return the key under which all jobs with `cache` are submitted."""
    return connection.idempotency_key("cache", "results")


async def finished_equal(connection: Connection, order: Order, content: bytes) -> tuple[int | None, bytes]:
    """Return an equal job that finished and whose results are kept, or None; and the salt for a new one.

    Raises ChainError or ServiceError.
    """
    from deepgrid.workflow import hash_definition  # here: the language takes 0.3 s to load

    await connection.refresh_requested()
    attempt, salt = 0, cache_key(connection).salt()
    while (job := await connection.find_requested(hash_definition(salt, content))) is not None:
        if job.status is JobStatus.FINISHED and await is_kept(connection, order, job):
            break
        attempt += 1
        salt = cache_key(connection).salt(0, attempt)
    return None if job is None else job.id, salt


async def is_kept(connection: Connection, order: Order, job: Job) -> bool:
    """Return whether the results of a job exist: the output that the grid keeps, or the log if there is no output."""
    from deepgrid.services.client import FilesClient

    services = connection.session.services
    try:
        if order.job.output is not None and order.job.output.grid is not None:
            await connection.patiently(lambda: FilesClient(services).of_job(job.id))
        elif order.job.enable_logging and await connection.reads.now() > job.ended_at + LOG_ARRIVES_WITHIN_S:
            log = await connection.patiently(lambda: services.read_log(job.id, -1))
            return log.closed or bool(log.next_offset)  # a deleted log is final, too
    except NotFound:
        return False
    return True
