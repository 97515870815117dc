"""The jobs of a customer, newest first, and their sweeps: what `AsyncGrid` reads of the past."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Collection, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from deepgrid.chain.client import JOBS_PER_CALL
from deepgrid.client.job import AsyncJob
from deepgrid.client.repeat.marks import Tags, tags_of
from deepgrid.client.repeat.sweep_groups import SweepGroup, read_sweep, read_sweeps, retry_failed
from deepgrid.errors import InputError
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus

if TYPE_CHECKING:
    from deepgrid.client.engine.connection import Connection

States = JobStatus | str | Collection[JobStatus | str]


class JobHistory(ABC):
    """Reads the jobs of a customer. It is a part of `AsyncGrid`."""

    @property
    @abstractmethod
    def address(self) -> str:
        """Address of the own key."""

    @abstractmethod
    async def _connect(self) -> Connection: ...

    async def jobs(
        self,
        status: States | None = None,
        since: datetime | None = None,
        *,
        customer: str | None = None,
        tags: Tags | None = None,
    ) -> AsyncIterator[AsyncJob]:
        """Yield the jobs of one customer, newest first. They are read in pages, as the caller asks for them.

        Args:
            status: Only jobs in this state, or one of these, such as `"running"`.
            since: Only jobs that were submitted at this time or later. Needs a time zone.
            customer: Address of the customer. The default is the own one.
            tags: Only own jobs with all of these tags, such as `["project=wing"]`. A name without `=` means any value.

        Yields:
            The jobs. What they wait for is known after `refresh`.

        Raises:
            InputError: A state, time or tag is wrong, or tags of another customer's jobs are asked for.
            ChainError: The node does not answer.
            ServiceError: With `tags`, the services do not answer.
        """
        wanted, since_s = states_of(status), unix_s(since)
        connection = await self._connect()
        marked = await with_tags(connection, tags, customer)
        async for job, cluster in newest_first(connection, customer or self.address):
            if job.submitted_at < since_s:
                return
            is_marked = marked is None or job.definition.definition_hash in marked
            if is_marked and (wanted is None or job.status in wanted):
                yield AsyncJob(connection, job, cluster=cluster)

    # -- sweeps ------------------------------------------------------------------------------

    async def sweeps(self, *, tags: Tags | None = None) -> list[SweepGroup]:
        """Return the own sweeps, newest first, also those of other processes.

        Args:
            tags: Only sweeps with all of these tags.

        Returns:
            The sweeps, each with its jobs.

        Raises:
            ServiceError: The services do not answer.
            ChainError: The node does not answer.
        """
        return await read_sweeps(await self._connect(), tags=tag_texts(tags))

    async def sweep(self, sweep_id: str) -> SweepGroup:
        """Return one of the own sweeps.

        Args:
            sweep_id: Its id, or the beginning of it.

        Returns:
            The sweep with its jobs.

        Raises:
            NotFound: There is no such sweep.
            InputError: Several sweeps begin so.
            GridError: The node or the services do not answer.
        """
        return await read_sweep(await self._connect(), sweep_id)

    async def retry_sweep(self, sweep_id: str, *, secrets: Mapping[str, str] | None = None) -> list[int]:
        """Repeat the jobs of a sweep that are over and did not finish. A second call requests nothing twice.

        Args:
            sweep_id: Its id, or the beginning of it.
            secrets: Values of masked secrets by their places, as `AsyncJob.file` lists them.

        Returns:
            Numbers of the new jobs.

        Raises:
            NotFound: There is no such sweep, or the files of its jobs are not kept any more.
            InputError: A masked secret is missing, or there are too few credits.
            GridError: The node or the services do not answer.
        """
        connection = await self._connect()
        return await retry_failed(connection, await read_sweep(connection, sweep_id), secrets)


async def with_tags(connection: Connection, tags: Tags | None, customer: str | None = None) -> Collection[str] | None:
    """Return the hashes of the definitions of own jobs with these tags; None without tags. Raises InputError."""
    if tags is None or not (found := tags_of(tags)):
        return None
    if customer is not None and customer != connection.session.address:
        raise InputError("Tags of another customer's jobs cannot be read.", next_step="Leave out the tags.")
    return await connection.patiently(lambda: connection.session.services.marks(tags=tag_texts(found)))


def tag_texts(tags: Tags | None) -> list[str]:
    """Return tags as the services are asked for them. Raises InputError."""
    return [f"{name}={value}" if value else name for name, value in tags_of(tags).items()]


async def newest_first(connection: Connection, customer: str) -> AsyncIterator[tuple[Job, str]]:
    """Yield all jobs of a customer with the name of their cluster, newest first."""
    ids = await connection.reads.jobs_by_customer(customer)
    for last in range(len(ids), 0, -JOBS_PER_CALL):
        page = ids[max(0, last - JOBS_PER_CALL) : last][::-1]
        for job in await connection.reads.jobs(page):
            yield job, await connection.cluster_names.of(job.provider)


def states_of(status: States | None) -> frozenset[JobStatus] | None:
    """Return the states that a filter names; None for no filter. Raises InputError."""
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
    """Return a time in unix seconds; 0 for None. Raises InputError for a time without a zone."""
    if since is None:
        return 0
    if since.tzinfo is None:
        raise InputError("The time `since` has no time zone.", next_step="Use datetime.now(UTC), or add one.")
    return int(since.timestamp())
