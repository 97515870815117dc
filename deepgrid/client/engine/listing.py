"""Lists the jobs of a customer in pages, and parses the filters of a list."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from datetime import datetime

from deepgrid.chain.client import JOBS_PER_CALL
from deepgrid.client.engine.connection import Connection
from deepgrid.errors import InputError
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus

States = JobStatus | str | Collection[JobStatus | str]


async def newest_first(connection: Connection, customer: str) -> AsyncIterator[tuple[Job, str]]:
    """All jobs of a customer with the name of their cluster, newest first."""
    chain = connection.chain
    ids = await connection.patiently(lambda: chain.jobs_by_customer(customer))
    for last in range(len(ids), 0, -JOBS_PER_CALL):
        page = ids[max(0, last - JOBS_PER_CALL) : last][::-1]
        jobs = await connection.patiently(lambda page=page: chain.jobs(page))  # type: ignore[misc]
        for job in jobs:
            yield job, await connection.cluster_names.of(job.provider)


def states_of(status: States | None) -> frozenset[JobStatus] | None:
    """The states that a filter names; None for no filter. Raises InputError."""
    if status is None:
        return None
    named = [status] if isinstance(status, str | JobStatus) else status
    return frozenset(one if isinstance(one, JobStatus) else _state(one) for one in named)


def _state(text: str) -> JobStatus:
    wanted = text.strip().lower().replace("-", " ").replace("_", " ")
    for status in JobStatus:
        if status.words.replace("-", " ") == wanted:
            return status
    known = ", ".join(status.words for status in JobStatus)
    raise InputError(f"{text[:40]!r} is not a state of a job.", next_step=f"Use one of: {known}.")


def unix_s(since: datetime | None) -> int:
    """A time in unix seconds; 0 for None. Raises InputError for a time without a zone."""
    if since is None:
        return 0
    if since.tzinfo is None:
        raise InputError("The time `since` has no time zone.", next_step="Use datetime.now(UTC), or add one.")
    return int(since.timestamp())
