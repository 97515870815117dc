"""The earlier job that an order waits for: no order is sent that the grid would cancel because of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from deepgrid.errors import InputError, NotFound
from deepgrid.lifecycle.states import JobStatus

if TYPE_CHECKING:
    from deepgrid.client.engine.connection import Connection
    from deepgrid.client.order import Terms


async def check_earlier(connection: Connection, orders: Iterable[Terms]) -> None:
    """Raise InputError if the job that one of the orders waits for has ended without having finished.

    Also raises ChainError. A job that does not exist is left to the contract, which refuses the order.
    """
    wanted = sorted({terms.after for terms in orders if terms.after and not terms.after_any})
    try:
        jobs = await connection.reads.jobs(wanted) if wanted else []
    except NotFound:
        return
    for job in jobs:
        if job.status.cold and job.status is not JobStatus.FINISHED:
            raise InputError(
                f"Job {job.id} ended without finishing ({job.status.words}), so a job after it would be cancelled.",
                next_step=f"Give --after with the job that repeats it, or --after-any {job.id}.",
            )
