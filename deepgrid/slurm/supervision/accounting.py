"""Slurm's side of the books: one accounting query for a whole period, with the jobs of all Unix accounts.

The ledger on the login node maps a row to its claim. The row's account must be the one that submitted the claim. If
accounting does not know the end of a claim, the completion hook's records and the queue are read. This happens when
accounting lags behind or is disabled.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from deepgrid.billing.entries import NOT_ACCOUNTED, ForeignJob, Run, Runs, Span
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import SlurmJob
from deepgrid.slurm.cluster import DAY_S, Cluster
from deepgrid.slurm.commands.job_row import Row
from deepgrid.slurm.observe.run_records import (
    NO_MARKS,
    Marks,
    is_refused_start,
    may_have_run_nothing,
    runs_of,
    seconds_in,
    spans,
    was_requeued,
    was_stopped_before_its_script,
)

CLAIMS_PER_QUERY = 500
BACKLOG_PAUSES_S = (1, 2, 4)
WITHOUT_ACCOUNTING = "the completion hook's records, as accounting is disabled"


async def read_runs(cluster: Cluster, span: Span, grid: JobKey, claims: Sequence[JobKey]) -> Runs:
    """Return the runs of `grid`'s grid during `span`, and the runs of `claims` of any age.

    Raises SlurmUnreachable when accounting or the login node does not answer.
    """
    oldest = min([span.since, *(key.claimed_at for key in claims)])
    late = await _is_late(cluster)
    # The margin of a day covers the difference between the chain's clock and the cluster's.
    accounted = await cluster.accounting(oldest - DAY_S, span.until + DAY_S)
    rows = accounted or []
    ledger = await cluster.ledger(row.slurm_id for row in rows)
    ours: dict[JobKey, list[Row]] = defaultdict(list)
    for row in rows:
        if key := ledger.claim_of(row, grid):
            ours[key].append(row)
    in_doubt = [key for key, mine in ours.items() if any(may_have_run_nothing(row) for row in mine)]
    marks = await _marks(cluster, in_doubt)
    runs = [run for key, mine in ours.items() for run in _runs(key, mine, marks.get(key.comment, NO_MARKS))]
    ended = {(run.job_id, run.claimed_at) for run in runs if run.ended_at is not None}
    open_claims = [key for key in claims if (key.job_id, key.claimed_at) not in ended]
    found = await _query_open_claims(cluster, open_claims, rows)
    replaced = {(run.job_id, run.claimed_at) for run in found}
    runs = [run for run in runs if (run.job_id, run.claimed_at) not in replaced] + found
    if accounted is None:
        return Runs(tuple(runs), complete=False, source=WITHOUT_ACCOUNTING)
    foreign = [row for row in rows if ledger.is_foreign(row) and _is_in(row, span)]
    jobs = [ForeignJob(row.slurm_id, row.user, row.started_at, row.ended_at) for row in foreign]
    return Runs(tuple(runs), foreign=tuple(jobs), complete=not late, late=late)


async def _is_late(cluster: Cluster) -> bool:
    """Return whether records wait for accounting. On a busy cluster some always do, each for a short time."""
    for pause_s in BACKLOG_PAUSES_S:
        if not await cluster.accounting_backlog():
            return False
        await asyncio.sleep(pause_s)
    return True


def _is_in(row: Row, span: Span) -> bool:
    if row.started_at is None or row.started_at >= span.until:
        return False
    return row.ended_at is None or row.ended_at >= span.since


async def _marks(cluster: Cluster, claims: Sequence[JobKey]) -> dict[str, Marks]:
    marks: dict[str, Marks] = {}
    for first in range(0, len(claims), CLAIMS_PER_QUERY):
        marks |= (await cluster.snapshot(claims[first : first + CLAIMS_PER_QUERY])).marks
    return marks


def _runs(key: JobKey, rows: Sequence[Row], marks: Marks) -> list[Run]:
    """Return the runs of a claim, each by its first record with an end.

    The parts of a requeued job count as one run.
    """
    if was_requeued(rows) or any(row.state == "RESIZING" for row in rows):
        parts = runs_of(rows, marks)
        found = spans(parts)
        last = max(parts, key=lambda row: row.started_at or 0)
        if found:
            begun, ended = min(start for start, _ in found), max(end for _, end in found)
            until = ended if last.ended_at else None
            given = min(parts, key=lambda row: row.started_at or 0).given  # the job's own account may give nodes back
            return [replace(_run(key, last), started_at=begun, ended_at=until, ran_s=seconds_in(found), given=given)]
    first: dict[tuple[int, int | None], Row] = {}
    for row in rows:
        place = (row.slurm_id, row.started_at)
        if place not in first or _ends_before(row, first[place]):
            first[place] = row
    return [
        replace(_run(key, row), guarded=is_refused_start(row, marks, rows) or was_stopped_before_its_script(row, marks))
        for row in first.values()
    ]


def _run(key: JobKey, row: Row | SlurmJob) -> Run:
    times, slurm_id = (row.started_at, row.ended_at), row.slurm_id or 0
    ran_s, given = None, row.given if isinstance(row, Row) else NOT_ACCOUNTED
    if row.suspended_s and row.started_at is not None and row.ended_at is not None:
        ran_s = max(0, row.ended_at - row.started_at - row.suspended_s)
    return Run(key.job_id, key.claimed_at, slurm_id, row.state, *times, row.exit_status, ran_s=ran_s, given=given)


def _ends_before(row: Row, other: Row) -> bool:
    return row.ended_at is not None and (other.ended_at is None or row.ended_at < other.ended_at)


async def _query_open_claims(cluster: Cluster, claims: Sequence[JobKey], rows: Sequence[Row]) -> list[Run]:
    """Return the runs of these claims by completion records, by accounting, or by the queue."""
    found: list[Run] = []
    for first in range(0, len(claims), CLAIMS_PER_QUERY):
        some = claims[first : first + CLAIMS_PER_QUERY]
        snapshot = await cluster.snapshot(some)
        seen = {key: snapshot.ended(key) or snapshot.records_of(key, rows).end or snapshot.queued(key) for key in some}
        for key, job in seen.items():
            if job is not None:
                found.append(replace(_run(key, job), ran_s=job.ran_s if job.ended_at is None else job.run_s))
    return found
