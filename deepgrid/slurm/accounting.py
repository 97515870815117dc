"""Slurm's side of the books: one accounting query for a whole period, all jobs of the job account.

Whose run a row is, its comment says, which jobs cannot choose. Where accounting does not know the end of a claim
(it hears of jobs in its own time, keeps no comments, or is disabled), the completion hook's records and the queue do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from deepgrid.billing.entries import Run, Runs, Span
from deepgrid.errors import SlurmUnreachable
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import SlurmJob
from deepgrid.slurm.cluster import DAY_S, Cluster
from deepgrid.slurm.commands import IN_OUR_TIME, Row, Sacct, first_complaint
from deepgrid.slurm.login import Runner
from deepgrid.slurm.look import as_job
from deepgrid.slurm.starts import GUARDED, NO_MARKS, Marks, is_refused_start

CLAIMS_AT_ONCE = 500
WITHOUT_ACCOUNTING = "the completion hook's records, as accounting is disabled"
_IDENTITY = re.compile(r".+:(\d+):(\d+)")


class PeriodSacct:
    """Accounting of all jobs of one Unix account that were there in a period, every record of each."""

    @staticmethod
    def argv(account: str, span: Span) -> list[str]:
        start, end = (
            datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%S") for time in (span.since, span.until)
        )
        argv = ["sacct", "-n", "-P", "-X", "-a", "-D", "-u", account, "-S", start, "-E", end, "-o", Sacct.FIELDS]
        return [*IN_OUR_TIME, *argv]

    parse = staticmethod(Sacct.parse)


async def read_runs(login: Runner, cluster: Cluster, span: Span, grid: JobKey, claims: Sequence[JobKey]) -> Runs:
    """What ran over `span` for the grid of `grid`, and what became of `claims`, however old.

    Raises SlurmUnreachable when accounting or the login node does not answer.
    """
    oldest = min([span.since, *(key.claimed_at for key in claims)])
    # The chain's clock is not the cluster's.
    rows = await _rows(login, cluster, Span(oldest - DAY_S, span.until + DAY_S))
    ours = list(_of_grid(rows or (), grid))
    marks = await _marks(cluster, [key for key, row in ours if row.exit_status == GUARDED])
    runs = [_run(key, as_job(row), guarded=is_refused_start(row, marks.get(key, NO_MARKS))) for key, row in ours]
    ended = {(run.job_id, run.claimed_at) for run in runs if run.ended_at is not None}
    open_claims = [key for key in claims if (key.job_id, key.claimed_at) not in ended]
    found = await _looked_up(cluster, open_claims, rows or ())
    better = {(run.job_id, run.claimed_at) for run in found}
    runs = [run for run in runs if (run.job_id, run.claimed_at) not in better] + found
    if rows is None:
        return Runs(tuple(runs), complete=False, source=WITHOUT_ACCOUNTING)
    return Runs(tuple(runs))


async def _rows(login: Runner, cluster: Cluster, span: Span) -> list[Row] | None:
    """Accounting's rows; None where it is disabled."""
    settings = cluster.settings
    done = await login.run(PeriodSacct.argv(settings.job_account or settings.user, span))
    complaint = done.stderr.decode(errors="replace")
    if done.exit_status and Sacct.DISABLED in complaint:
        return None
    if done.exit_status:
        raise SlurmUnreachable(f"Slurm's accounting does not answer: {first_complaint(complaint)}.")
    return PeriodSacct.parse(done.stdout.decode(errors="replace"))


def _of_grid(rows: Iterable[Row], grid: JobKey) -> Iterable[tuple[JobKey, Row]]:
    """The runs of this grid, each once: the first record with an end, else one without."""
    found: dict[tuple[JobKey, int, int | None], Row] = {}
    for row in rows:
        identity = _IDENTITY.fullmatch(row.comment)
        if identity is None:
            continue
        key = replace(grid, job_id=int(identity[1]), claimed_at=int(identity[2]))
        place = (key, row.slurm_id, row.started_at)
        if row.comment == key.comment and (place not in found or _ends_before(row, found[place])):
            found[place] = row
    return ((key, row) for (key, _, _), row in found.items())


def _ends_before(row: Row, other: Row) -> bool:
    return row.ended_at is not None and (other.ended_at is None or row.ended_at < other.ended_at)


async def _marks(cluster: Cluster, claims: Sequence[JobKey]) -> dict[JobKey, Marks]:
    """What starts of these claims left on the login node."""
    found: dict[JobKey, Marks] = {}
    for first in range(0, len(claims), CLAIMS_AT_ONCE):
        some = claims[first : first + CLAIMS_AT_ONCE]
        look = await cluster.look(some)
        found |= {key: look.marks[key.comment] for key in some if key.comment in look.marks}
    return found


async def _looked_up(cluster: Cluster, claims: Sequence[JobKey], rows: Sequence[Row]) -> list[Run]:
    """The runs of these claims by completion records, by accounting without comments, or by the queue."""
    found: list[Run] = []
    for first in range(0, len(claims), CLAIMS_AT_ONCE):
        some = claims[first : first + CLAIMS_AT_ONCE]
        look = await cluster.look(some)
        seen = {key: look.ended(key) or look.accounted(key, rows).end or look.queued(key) for key in some}
        found += [_run(key, job) for key, job in seen.items() if job is not None]
    return found


def _run(key: JobKey, job: SlurmJob, *, guarded: bool = False) -> Run:
    return Run(
        key.job_id, key.claimed_at, job.slurm_id or 0, job.state, job.started_at, job.ended_at, job.exit_status, guarded
    )
