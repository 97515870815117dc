"""Reads all that is known about a job: on chain, and the remarks of the grid."""

from __future__ import annotations

import asyncio

from deepgrid.client.display.record import JobRecord
from deepgrid.client.engine.connection import Connection
from deepgrid.client.engine.queue_place import read_place
from deepgrid.client.values.returned import Remark, datetime_of
from deepgrid.errors import GridError


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
