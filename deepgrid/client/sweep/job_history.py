"""The jobs of a customer, newest first, and their sweeps: what `AsyncGrid` reads of the past."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, SupportsIndex

from deepgrid.client.job_list import AsyncJobs, Matches
from deepgrid.client.repeat.marks import Tags, tags_of
from deepgrid.client.repeat.sweep_groups import SweepGroup, read_sweep, read_sweeps, retry_failed
from deepgrid.errors import InputError
from deepgrid.lifecycle.states import JobStatus

if TYPE_CHECKING:
    import pandas as pd

    from deepgrid.client.bills.job_usage import When
    from deepgrid.client.engine.connection import Connection

States = JobStatus | str | Collection[JobStatus | str]


class JobHistory(ABC):
    """Reads the jobs of a customer. It is a part of `AsyncGrid`."""

    @property
    @abstractmethod
    def address(self) -> str:
        """Address of the client's own key."""

    @abstractmethod
    async def _connect(self) -> Connection: ...

    def jobs(
        self,
        status: States | None = None,
        since: datetime | None = None,
        *,
        customer: str | None = None,
        tags: Tags | None = None,
    ) -> AsyncJobs:
        """Return the jobs of one customer, newest first. They are read in pages, as the caller asks for them.

        Args:
            status: Only jobs in this state, or one of these, such as `"running"`.
            since: Only jobs that were submitted at this time or later. Needs a time zone.
            customer: Address of the customer. The default is the client's own address.
            tags: Only own jobs with all of these tags, such as `["project=wing"]`. A name without `=` means any value.

        Returns:
            The jobs, to iterate over. What they wait for is known after `refresh`. Reading them raises ChainError if
            the node does not answer and, with `tags`, ServiceError if the services do not.

        Raises:
            InputError: A state, time or tag is wrong, or tags of another customer's jobs are asked for.
        """
        own = self.address if customer is None or tags is not None else ""
        if tags is not None and customer not in (None, own):
            raise InputError("Tags of another customer's jobs cannot be read.", next_step="Leave out the tags.")
        texts = tag_texts(tags)

        async def opening() -> tuple[Connection, Collection[str] | None]:
            connection = await self._connect()
            return connection, await with_tags(connection, texts)

        return AsyncJobs(Matches(opening, customer or own, states_of(status), unix_s(since)))

    async def usage(self, since: When = None, until: When = None, by: str = "job") -> pd.DataFrame:
        """Return the cost of your jobs, in the period in which they were settled.

        Args:
            since: Start, such as `"2026-11-01"`, in UTC unless it names a time zone; by default the first job.
            until: End of the period, which is not part of it; by default now.
            by: One row per `job`, `month`, `cluster` or `name`.

        Returns:
            The rows. Columns that end with `_wei` hold exact ints of wei.
        """
        from deepgrid.client.bills.job_usage import read_usage_frame  # here: few programs read their usage

        return await read_usage_frame(await self._connect(), self.address, since, until, by)

    # -- sweeps ------------------------------------------------------------------------------

    async def sweeps(self, *, tags: Tags | None = None) -> list[SweepGroup]:
        """Return your sweeps, newest first, including sweeps of other processes.

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
        """Return one of your sweeps.

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

    async def retry_sweep(
        self,
        sweep_id: str,
        *,
        secrets: Mapping[str, str] | None = None,
        own_secrets: Mapping[int, Mapping[str, str]] | None = None,
        after: SupportsIndex | None = None,
        after_any: SupportsIndex | None = None,
        approve: bool = True,
    ) -> list[int]:
        """Repeat the jobs of a sweep that are over and did not finish. A second call requests nothing twice.

        Args:
            sweep_id: Its id, or the beginning of it.
            secrets: Values of masked secrets by their places, as `AsyncJob.file` lists them.
            own_secrets: The same by the numbers of failed jobs, for secrets that differ: parameters of the sweep. A
                kept parameter is taken from here only.
            after: A job, or its number, that must finish before all of these. The default is the wish of the earlier
                jobs, if no cluster had them.
            after_any: A job that must end before all of these, in any way.
            approve: Raise an allowance that is too low, to exactly the credits of these jobs.

        Returns:
            Numbers of the new jobs.

        Raises:
            NotFound: There is no such sweep, or the files of its jobs are not kept any more.
            InputError: A masked secret is missing, there are too few credits, or the job before has failed.
            GridError: The node or the services do not answer.
        """
        connection = await self._connect()
        group = await read_sweep(connection, sweep_id)
        return await retry_failed(
            connection,
            group,
            secrets,
            lambda terms: terms.following(after, after_any),
            own_secrets=own_secrets,
            approve=approve,
        )


async def with_tags(connection: Connection, texts: Sequence[str]) -> Collection[str] | None:
    """Return the hashes of the definitions of own jobs with these tags; None without tags."""
    if not texts:
        return None
    return await connection.patiently(lambda: connection.session.services.marks(tags=texts))


def tag_texts(tags: Tags | None) -> list[str]:
    """Return tags as the services are asked for them. Raises InputError."""
    return [f"{name}={value}" if value else name for name, value in tags_of(tags).items()]


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
