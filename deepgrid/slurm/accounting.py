"""Slurm's side of the books: one accounting query for a whole period, all jobs of the job account.

Whose run a row is, its comment says, which jobs cannot choose. Where accounting does not know the end of a claim
(it hears of jobs in its own time, keeps no comments, or is disabled), the completion hook's records and the queue do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from deepgrid.billing.entries import Run, Runs, Span
from deepgrid.errors import SlurmUnreachable
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import SlurmJob
from deepgrid.slurm.cluster import DAY_S, Cluster
from deepgrid.slurm.commands import IN_OUR_TIME, Row, Sacct, first_complaint, wait_status
from deepgrid.slurm.login import Runner
from deepgrid.slurm.look import as_job
from deepgrid.slurm.submit import GUARD_STATUS

CLAIMS_AT_ONCE = 500
WITHOUT_ACCOUNTING = "the completion hook's records, as accounting is disabled"
_IDENTITY = re.compile(r"(.+):(\d+):(\d+)")


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
    runs = list(_of_grid(rows or (), grid))
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


def _of_grid(rows: Iterable[Row], grid: JobKey) -> Iterable[Run]:
    """The runs of this grid, each once: a record with an end counts before one without."""
    ours = grid.comment.rsplit(":", 2)[0]
    found: dict[tuple[str, int, int | None], Run] = {}
    for row in rows:
        identity = _IDENTITY.fullmatch(row.comment)
        if identity is None or identity[1] != ours:
            continue
        place = (row.comment, row.slurm_id, row.started_at)
        if place not in found or found[place].ended_at is None:
            found[place] = _run(int(identity[2]), int(identity[3]), as_job(row))
    return found.values()


async def _looked_up(cluster: Cluster, claims: Sequence[JobKey], rows: Sequence[Row]) -> list[Run]:
    """The runs of these claims by completion records, by accounting without comments, or by the queue."""
    found: list[Run] = []
    for first in range(0, len(claims), CLAIMS_AT_ONCE):
        some = claims[first : first + CLAIMS_AT_ONCE]
        look = await cluster.look(some)
        seen = {key: look.ended(key) or look.accounted(key, rows)[0] or look.queued(key) for key in some}
        found += [_run(key.job_id, key.claimed_at, job) for key, job in seen.items() if job is not None]
    return found


def _run(job_id: int, claimed_at: int, job: SlurmJob) -> Run:
    return Run(
        job_id, claimed_at, job.slurm_id or 0, job.state, job.started_at, job.ended_at, job.exit_status,
        guarded=job.exit_status == wait_status(GUARD_STATUS, 0),
    )  # fmt: skip
