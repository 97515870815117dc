"""Slurm's side of the books: one accounting query for a whole period, jobs of all Unix accounts.

Whose run a row is, its comment says, if its account is the one that the claim was submitted under. Where accounting
does not know the end of a claim (it hears of jobs in its own time, keeps no comments, or is disabled), the completion
hook's records and the queue do.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from deepgrid.billing.entries import Run, Runs, Span
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import SlurmJob
from deepgrid.slurm.cluster import DAY_S, Cluster
from deepgrid.slurm.commands import Row
from deepgrid.slurm.look import as_job
from deepgrid.slurm.starts import NO_MARKS, Marks, is_refused_start

CLAIMS_AT_ONCE = 500
WITHOUT_ACCOUNTING = "the completion hook's records, as accounting is disabled"
_IDENTITY = re.compile(r".+:(\d+):(\d+)")


async def read_runs(cluster: Cluster, span: Span, grid: JobKey, claims: Sequence[JobKey]) -> Runs:
    """What ran over `span` for the grid of `grid`, and what became of `claims`, however old.

    Raises SlurmUnreachable when accounting or the login node does not answer.
    """
    oldest = min([span.since, *(key.claimed_at for key in claims)])
    known = frozenset(claims)
    # The chain's clock is not the cluster's.
    rows = await cluster.accounting(oldest - DAY_S, span.until + DAY_S)
    named = _of_grid(rows or (), grid)
    kept = await _kept(cluster, {key for key, _ in named})
    ours = _each_once((key, row) for key, row in named if _is_ours(key, row, kept, known))
    runs = [
        _run(key, as_job(row), guarded=is_refused_start(row, kept.marks.get(key.comment, NO_MARKS)))
        for key, row in ours
    ]
    ended = {(run.job_id, run.claimed_at) for run in runs if run.ended_at is not None}
    open_claims = [key for key in claims if (key.job_id, key.claimed_at) not in ended]
    found = await _looked_up(cluster, open_claims, rows or ())
    better = {(run.job_id, run.claimed_at) for run in found}
    runs = [run for run in runs if (run.job_id, run.claimed_at) not in better] + found
    if rows is None:
        return Runs(tuple(runs), complete=False, source=WITHOUT_ACCOUNTING)
    return Runs(tuple(runs))


def _of_grid(rows: Iterable[Row], grid: JobKey) -> list[tuple[JobKey, Row]]:
    """The rows that are called like jobs of this grid, each with the claim that it names."""
    named = []
    for row in rows:
        if identity := _IDENTITY.fullmatch(row.comment):
            key = replace(grid, job_id=int(identity[1]), claimed_at=int(identity[2]))
            if row.comment == key.comment:
                named.append((key, row))
    return named


@dataclass(slots=True)
class _Kept:
    """What the login node keeps of claims, by comment: as in a `Look`."""

    users: dict[str, str] = field(default_factory=dict)
    marks: dict[str, Marks] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)


async def _kept(cluster: Cluster, claims: Iterable[JobKey]) -> _Kept:
    keys = sorted(claims, key=lambda key: (key.job_id, key.claimed_at))
    kept = _Kept()
    for first in range(0, len(keys), CLAIMS_AT_ONCE):
        look = await cluster.look(keys[first : first + CLAIMS_AT_ONCE])
        kept.users |= look.users
        kept.marks |= look.marks
        kept.gone |= look.gone
    return kept


def _is_ours(key: JobKey, row: Row, kept: _Kept, claims: Collection[JobKey]) -> bool:
    """Whether it ran under the account that its claim was submitted under.

    Of old claims nothing is kept: a row of one that the chain knows is believed.
    """
    return kept.users.get(key.comment) == row.user or (key.comment in kept.gone and key in claims)


def _each_once(rows: Iterable[tuple[JobKey, Row]]) -> Iterable[tuple[JobKey, Row]]:
    """Each run once: the first record with an end, else one without."""
    found: dict[tuple[JobKey, int, int | None], Row] = {}
    for key, row in rows:
        place = (key, row.slurm_id, row.started_at)
        if place not in found or _ends_before(row, found[place]):
            found[place] = row
    return ((key, row) for (key, _, _), row in found.items())


def _ends_before(row: Row, other: Row) -> bool:
    return row.ended_at is not None and (other.ended_at is None or row.ended_at < other.ended_at)


async def _looked_up(cluster: Cluster, claims: Sequence[JobKey], rows: Sequence[Row]) -> list[Run]:
    """The runs of these claims by completion records, by accounting without comments, or by the queue."""
    found: list[Run] = []
    for first in range(0, len(claims), CLAIMS_AT_ONCE):
        some = claims[first : first + CLAIMS_AT_ONCE]
        look = await cluster.look(some)
        seen = {key: look.ended(key) or look.records_of(key, rows).end or look.queued(key) for key in some}
        found += [_run(key, job) for key, job in seen.items() if job is not None]
    return found


def _run(key: JobKey, job: SlurmJob, *, guarded: bool = False) -> Run:
    return Run(
        key.job_id, key.claimed_at, job.slurm_id or 0, job.state, job.started_at, job.ended_at, job.exit_status, guarded
    )
