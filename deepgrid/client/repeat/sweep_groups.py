"""Sweeps as groups: their jobs with parameters and states, including jobs of other processes, and retries.

The services keep the place of each job in its sweep. The chain has the states.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from deepgrid.client.display.data_frames import PLACE, frame_of
from deepgrid.client.engine.earlier_job import check_earlier
from deepgrid.client.engine.idempotency import key_lock
from deepgrid.client.engine.submission import note
from deepgrid.client.job_values import credits_of, moment_of
from deepgrid.client.repeat.job_files import read_job_file, workflow_of
from deepgrid.client.repeat.repeatable import order_again
from deepgrid.errors import InputError, NotFound
from deepgrid.lifecycle import exits
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus

if TYPE_CHECKING:
    import pandas as pd

    from deepgrid.client.engine.connection import Connection
    from deepgrid.client.order import Order, Terms
    from deepgrid.services.kept_messages import JobMark, Mark

RETRY = "retry"  # what idempotency keys of repetitions are for
NOT_REQUESTED = "not requested"


@dataclass(frozen=True)
class SweepRow:
    """One place of a sweep, with its newest job.

    Attributes:
        at: The place, from 1.
        parameters: Its parameter sets: one, or several that are packed.
        job_id: Number of the newest job.
        status: State of that job.
        outcome: How it ended, in words; empty until then.
        cluster: Name of its cluster; empty while none is assigned.
        cost: Credits that all its jobs cost so far which are over.
        attempts: Number of its jobs.
    """

    at: int
    parameters: tuple[Mapping[str, str], ...]
    job_id: int
    status: JobStatus
    outcome: str
    cluster: str
    cost: Decimal
    attempts: int

    @property
    def failed(self) -> bool:
        """Whether the job is over and did not finish."""
        return self.status.cold and self.status is not JobStatus.FINISHED


@dataclass(frozen=True)
class SweepGroup:
    """The jobs of a sweep.

    Attributes:
        id: Id of the sweep.
        name: Its name.
        size: Number of its places.
        rows: The places that have a job, in order.
        submitted: When its first job was requested.
        tags: Tags of its jobs.
        note: Note on its jobs.
    """

    id: str
    name: str
    size: int
    rows: tuple[SweepRow, ...] = field(repr=False)
    submitted: datetime | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    note: str = ""

    @property
    def columns(self) -> list[str]:
        """Names of the parameters, in the order of their first use."""
        return list(dict.fromkeys(name for row in self.rows for one in row.parameters for name in one))

    @property
    def counts(self) -> dict[str, int]:
        """Number of places by the words of their state; `not requested` for those without a job."""
        counted = Counter(row.status.words for row in self.rows)
        counted[NOT_REQUESTED] = max(0, self.size - len(self.rows))
        order = [*(status.words for status in JobStatus), NOT_REQUESTED]
        return {words: counted[words] for words in order if counted[words]}

    @property
    def progress(self) -> str:
        """The counts in words: `48 finished, 2 failed of 50`."""
        return f"{', '.join(f'{count} {words}' for words, count in self.counts.items())} of {self.size}"

    @property
    def failed(self) -> list[SweepRow]:
        """The places whose newest job is over and did not finish."""
        return [row for row in self.rows if row.failed]

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per place that has a job. It needs pandas, which the extra `bills` installs.

        Returns:
            The table, with a column per parameter; packed sets are joined by commas.

        Raises:
            ConfigurationError: pandas is not installed.
        """
        return frame_of(self.rows, PLACE, [row.parameters for row in self.rows])


async def read_sweeps(
    connection: Connection, sweep_id: str | None = None, tags: Sequence[str] = ()
) -> list[SweepGroup]:
    """Return the customer's sweeps whose id begins with `sweep_id`, newest first. Raises GridError."""
    whole = sweep_id if sweep_id is not None and len(sweep_id) == 16 else None
    marks = await connection.patiently(lambda: connection.session.services.marks(sweep=whole, tags=tags))
    places = [one for one in marks.values() if one.sweep and one.sweep.id.startswith(sweep_id or "")]
    jobs = await _jobs_of(connection, [one.definition_hash for one in places])
    by_sweep: dict[str, list[tuple[JobMark, Job]]] = defaultdict(list)
    for one in places:
        if one.sweep and (job := jobs.get(one.definition_hash)):
            by_sweep[one.sweep.id].append((one, job))
    groups = [await _group(connection, found) for found in by_sweep.values()]
    return sorted(groups, key=lambda group: group.submitted.timestamp() if group.submitted else 0.0, reverse=True)


async def read_sweep(connection: Connection, sweep_id: str) -> SweepGroup:
    """Return the sweep whose id begins with `sweep_id`. Raises NotFound, or InputError for several."""
    if not sweep_id or len(sweep_id) > 16 or set(sweep_id) - set("0123456789abcdef"):
        raise InputError(f"{sweep_id[:40]!r} is no id of a sweep.", next_step="Look at `dps sweep list`.")
    found = await read_sweeps(connection, sweep_id)
    if not found:
        raise NotFound(f"There is no sweep {sweep_id} of yours.", next_step="Look at `dps sweep list`.")
    if len(found) > 1:
        raise InputError(f"{len(found)} sweeps begin with {sweep_id}.", next_step="Give more of its digits.")
    return found[0]


async def _jobs_of(connection: Connection, hashes: Iterable[str]) -> dict[str, Job]:
    await connection.patiently(connection.requested.refresh)
    ids = {one: job_id for one in hashes if (job_id := connection.requested.find(one)) is not None}
    jobs = await connection.reads.jobs(list(ids.values())) if ids else []
    return dict(zip(ids, jobs, strict=True))


async def _group(connection: Connection, found: Sequence[tuple[JobMark, Job]]) -> SweepGroup:
    by_place: dict[int, list[tuple[JobMark, Job]]] = defaultdict(list)
    for mark, job in found:
        assert mark.sweep is not None
        by_place[mark.sweep.at].append((mark, job))
    rows = []
    for at, attempts in sorted(by_place.items()):
        mark, newest = max(attempts, key=lambda pair: pair[1].id)
        assert mark.sweep is not None
        cost_wei = sum(job.final_cost_wei for _, job in attempts if job.status.cold)
        rows.append(
            SweepRow(
                at=at,
                parameters=tuple(mark.sweep.parameters),
                job_id=newest.id,
                status=newest.status,
                outcome=exits.outcome(newest) if newest.status.cold else "",
                cluster=await connection.cluster_names.of(newest.provider),
                cost=credits_of(cost_wei),
                attempts=len(attempts),
            )
        )
    mark, _ = max(found, key=lambda pair: pair[1].id)
    assert mark.sweep is not None
    return SweepGroup(
        id=mark.sweep.id,
        name=mark.sweep.name,
        size=mark.sweep.of,
        rows=tuple(rows),
        submitted=moment_of(min(job.submitted_at for _, job in found)),
        tags=mark.tags,
        note=mark.note,
    )


async def retry_failed(
    connection: Connection,
    group: SweepGroup,
    secrets: Mapping[str, str] | None,
    waiting: Callable[[Terms], Terms],
    *,
    own_secrets: Mapping[int, Mapping[str, str]] | None = None,
    approve: bool = True,
) -> list[int]:
    """Repeat the failed places of a sweep, each once; returns the numbers of the new jobs.

    `own_secrets` has the secrets of single jobs. What is known to be a parameter of the sweep is taken from there only.
    `waiting` gives the terms of the jobs with the job that they wait for. A retry that another call has requested
    already is not requested again. Raises GridError.
    """
    from deepgrid.services.kept_messages import Mark

    marks = await connection.patiently(lambda: connection.session.services.marks(sweep=group.id))
    jobs = await connection.reads.jobs([row.job_id for row in group.failed]) if group.failed else []
    key = connection.idempotency_key(RETRY, group.id)
    async with key_lock(key.folder, key.id, connection.settings.key_wait_s):
        await connection.refresh_requested()
        prepared = []
        for job in jobs:
            mark = marks[job.definition.definition_hash]
            place = Mark(tags=mark.tags, note=mark.note, sweep=mark.sweep)
            sets = mark.sweep.parameters if mark.sweep else ()
            common = {place: value for place, value in (secrets or {}).items() if not is_parameter(place, sets)}
            order, salt = await _again(connection, job, {**common, **(own_secrets or {}).get(job.id, {})})
            prepared.append(((replace(order, terms=waiting(order.terms)), salt), place))
        return await _request(connection, prepared, approve=approve)


def is_parameter(place: str, parameters: Sequence[Mapping[str, str]]) -> bool:
    """Return whether the place of a secret has one of these parameters, so that each job has its own value."""
    return is_variable(place) and any(place.rpartition(".")[2] in one for one in parameters)


def is_variable(place: str) -> bool:
    """Return whether a place is an environment variable, as all parameters of a sweep are."""
    return place.split(".")[-2:-1] == ["env"]


async def _again(connection: Connection, job: Job, secrets: Mapping[str, str] | None) -> tuple[Order, bytes]:
    """Return the order that repeats a job, and the salt of its definition, which follows from the job."""
    file = await read_job_file(connection, job)
    order = order_again(job, workflow_of(file, job.name, secrets))
    return order, connection.idempotency_key(RETRY, f"job {job.id}").salt()


async def _request(
    connection: Connection, prepared: Sequence[tuple[tuple[Order, bytes], Mark]], *, approve: bool
) -> list[int]:
    """Request the jobs that do not exist yet: all or none, in one transaction if they fit."""
    from deepgrid.workflow import canonical, hash_definition

    orders: list[tuple[Order, str]] = []
    noted: dict[str, Mark] = {}
    hashes = [hash_definition(salt, canonical(order.job)) for (order, salt), _ in prepared]
    existing = [await connection.find_requested(one) for one in hashes]
    found = [job.id for job in existing if job is not None]
    missing = [one for one, job in zip(zip(prepared, hashes, strict=True), existing, strict=True) if job is None]
    await check_earlier(connection, [order.terms for ((order, _), _), _ in missing])
    for ((order, salt), mark), definition_hash in missing:
        async with connection.uploads:
            await connection.session.store(order, salt)
        orders.append((order, definition_hash))
        noted[definition_hash] = mark
    if noted:
        await note(connection, noted)
    async with connection.spending:
        return sorted(found + await connection.session.request_all(orders, approve=approve))
