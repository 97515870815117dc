"""What a customer's own jobs cost over a period, by month, cluster or name. Pure, and without pandas.

A job counts in the period and the month (UTC) in which it was settled, as in the books.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

from deepgrid.billing.entries import Span
from deepgrid.billing.usage.sums import Sums
from deepgrid.errors import InputError
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus

By = Literal["month", "cluster", "name", "job"]
NO_CLUSTER = "none"  # of jobs that ended before a cluster had them


@dataclass(frozen=True, slots=True)
class OwnJob:
    """A job that was settled in the period. `cluster` is a name, or an address without one."""

    job_id: int
    name: str
    cluster: str
    status: JobStatus
    month: str
    submitted_at: int
    started_at: int
    settled_at: int
    sums: Sums

    def key(self, by: By) -> str:
        """Return the group of the job."""
        match by:
            case "month":
                return self.month
            case "cluster":
                return self.cluster
            case "name":
                return self.name
        return str(self.job_id)


@dataclass(frozen=True)
class OwnUsage:
    """The usage of one customer. `open_jobs` are not over at the moment, and hold `locked_wei`."""

    customer: str
    span: Span
    jobs: tuple[OwnJob, ...]
    open_jobs: int
    locked_wei: int

    @property
    def totals(self) -> Sums:
        """The sums of all jobs."""
        return sum((one.sums for one in self.jobs), start=Sums())

    def groups(self, by: By) -> dict[str, Sums]:
        """Return the sums of each group: months in order, other groups with the highest cost first."""
        found: dict[str, Sums] = defaultdict(Sums)
        for one in self.jobs:
            found[one.key(by)] += one.sums
        if by in ("month", "job"):
            return dict(found)
        return dict(sorted(found.items(), key=lambda one: (-one[1].cost_wei, one[0])))


def own_usage(customer: str, span: Span, jobs: Iterable[Job], names: Mapping[str, str]) -> OwnUsage:
    """Return the usage by all jobs of the customer. `names` are the clusters' names by address."""
    settled, held = list[Job](), list[Job]()
    for job in jobs:
        if job.status.hot:
            held.append(job)
        elif span.since <= job.ended_at < span.until:
            settled.append(job)
    shown = shown_names(names)
    rows = (_own(job, shown) for job in sorted(settled, key=lambda job: (job.ended_at, job.id)))
    return OwnUsage(customer, span, tuple(rows), len(held), sum(job.held_wei for job in held))


def shown_names(names: Mapping[str, str]) -> dict[str, str]:
    """Return the names by address. A name that several clusters share is followed by the address."""
    count = Counter(names.values())
    return {address: name if count[name] == 1 else f"{name} ({address})" for address, name in names.items()}


def _own(job: Job, names: Mapping[str, str]) -> OwnJob:
    cluster = NO_CLUSTER if job.provider is None else names.get(job.provider, job.provider)
    month = month_of(job.ended_at)
    times = job.submitted_at, job.started_at, job.ended_at
    return OwnJob(job.id, job.name, cluster, job.status, month, *times, sums=_sums(job))


def _sums(job: Job) -> Sums:
    """Return the money of a job. The cost shows the billed minutes: each of them costs the rate, the last one less."""
    cost, rate = job.final_cost_wei, job.rate_wei_per_minute
    cut = cost * job.cut_percent // 100
    return Sums(
        jobs=1,
        billed_minutes=-(-cost // rate) if rate else 0,
        paid_wei=cost - cut,
        cut_wei=cut,
        refunded_wei=job.returned_wei,
    )


def month_of(unix_s: int) -> str:
    """Return the month in UTC: `2026-11`."""
    return f"{datetime.fromtimestamp(unix_s, UTC):%Y-%m}"


def checked_by(text: str) -> By:
    """Return the kind of groups. Raises InputError."""
    for one in get_args(By):
        if one == text:
            return one  # type: ignore[no-any-return]
    raise InputError(f"{text[:40]!r} is no kind of groups.", next_step=f"Use one of: {', '.join(get_args(By))}.")


def as_rows(usage: OwnUsage, by: By) -> list[dict[str, str | int]]:
    """Return one row per group: its name, jobs, minutes, and amounts in wei as ints. Jobs have more fields."""
    if by == "job":
        return [{**_of_job(one), **_money(one.sums)} for one in usage.jobs]
    return [{by: key, "jobs": sums.jobs, **_money(sums)} for key, sums in usage.groups(by).items()]


def usage_as_json(usage: OwnUsage, by: By) -> dict[str, object]:
    """Return JSON values: amounts as texts of wei, times in unix seconds."""
    totals = {"jobs": usage.totals.jobs, **_money(usage.totals)}
    return {
        "customer": usage.customer,
        "since": usage.span.since,
        "until": usage.span.until,
        "by": by,
        "rows": [_texts(row) for row in as_rows(usage, by)],
        "totals": _texts(totals),
        "open_jobs": usage.open_jobs,
        "locked_wei": str(usage.locked_wei),
    }


def _of_job(one: OwnJob) -> dict[str, str | int]:
    return {
        "job": one.job_id,
        "name": one.name,
        "cluster": one.cluster,
        "status": one.status.words,
        "month": one.month,
        "submitted_at": one.submitted_at,
        "started_at": one.started_at,
        "settled_at": one.settled_at,
    }


def _money(sums: Sums) -> dict[str, str | int]:
    return {
        "minutes": sums.billed_minutes,
        "cost_wei": sums.cost_wei,
        "paid_wei": sums.paid_wei,
        "cut_wei": sums.cut_wei,
        "refunded_wei": sums.refunded_wei,
    }


def _texts(row: Mapping[str, str | int]) -> dict[str, str | int]:
    return {name: str(value) if name.endswith("_wei") else value for name, value in row.items()}
