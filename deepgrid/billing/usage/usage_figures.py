"""Figures of one party's use over a period, from the frames of its books. Money is an exact int of wei.

Money belongs to the period of the block that settled the job, as in the books. Time in use belongs to the period in
which it passed. A wait belongs to the period in which it ended.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from deepgrid.billing.entries import Ledger, Span
from deepgrid.billing.frames import GIVEN_BACK, SETTLED, chain_frame, records
from deepgrid.billing.period import DAY_S
from deepgrid.billing.usage.capacity import NOTHING, Capacity, Offers, overlap_s
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus

MOST_BARS = 62  # of a plot over time
NO_CLUSTER = ""  # of jobs that ended before a cluster had them


class End(StrEnum):
    """How a job ended, and by whose fault."""

    FINISHED = "finished"
    FAILED = "failed by itself"
    CLUSTER_FAILED = "failed by the cluster"
    NOT_STARTED = "failed before its start"
    OUT_OF_CREDITS = "out of credits"
    CANCELLED = "cancelled while it ran"
    CANCELLED_EARLY = "cancelled before its start"
    PANICKED = "panicked"

    @property
    def is_failure(self) -> bool:
        return self in (End.FAILED, End.CLUSTER_FAILED, End.NOT_STARTED, End.PANICKED)


@dataclass(frozen=True, slots=True)
class JobUse:
    """A job in the period: settled in it, or open at its end. Times are unix seconds, 0 for those that have not come.

    The money is what moved in the period. A wait is None unless it ended in the period. `cluster` is an address.
    """

    job_id: int
    customer: str
    cluster: str
    settled_at: int
    status: str
    end: End | None
    exit_status: int
    error: str
    requested_at: int
    claimed_at: int
    started_at: int
    ended_at: int
    to_claim_s: int | None
    to_start_s: int | None
    billed_minutes: int
    paid_wei: int
    cut_wei: int
    refunded_wei: int
    still_locked_wei: int
    used_s: Capacity
    ran_until: int
    tx: str


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over jobs: those that were settled, their minutes and money, the capacity used, and the one offered."""

    jobs: int = 0
    billed_minutes: int = 0
    paid_wei: int = 0
    cut_wei: int = 0
    refunded_wei: int = 0
    used_s: Capacity = NOTHING
    offered_s: Capacity = NOTHING

    @property
    def cost_wei(self) -> int:
        """The wei that customers paid: to the provider, and the platform's cut."""
        return self.paid_wei + self.cut_wei

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            jobs=self.jobs + other.jobs,
            billed_minutes=self.billed_minutes + other.billed_minutes,
            paid_wei=self.paid_wei + other.paid_wei,
            cut_wei=self.cut_wei + other.cut_wei,
            refunded_wei=self.refunded_wei + other.refunded_wei,
            used_s=self.used_s + other.used_s,
            offered_s=self.offered_s + other.offered_s,
        )


@dataclass(frozen=True, slots=True)
class Waits:
    """Waits in seconds: the middle one, the one that nine of ten do not exceed, the longest. None without waits."""

    count: int
    median_s: int | None = None
    most_s: int | None = None
    longest_s: int | None = None

    @classmethod
    def of(cls, waits_s: Iterable[int | None]) -> Waits:
        known = sorted(one for one in waits_s if one is not None)
        if not known:
            return cls(0)
        return cls(len(known), *(known[-(-len(known) * tenths // 10) - 1] for tenths in (5, 9, 10)))


@dataclass(frozen=True, slots=True)
class Bar:
    """A part of the period in a plot, from `since` (unix seconds) on."""

    since: int
    paid_wei: int
    cut_wei: int
    used_s: Capacity
    offered_s: Capacity


@dataclass(frozen=True)
class Usage:
    """The figures of a period. Customers and clusters are addresses, the one with the highest cost first."""

    span: Span
    jobs: tuple[JobUse, ...]
    totals: Sums
    customers: dict[str, Sums]
    clusters: dict[str, Sums]
    ends: Counter[End]
    open_jobs: int
    given_back: int
    to_claim: Waits
    to_start: Waits
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class UsageReport:
    """A period, and the one before it. `provider` is None for the whole grid."""

    name: str
    provider: str | None
    now: Usage
    before: Usage
    offers: Offers


def report(
    name: str, provider: str | None, now: tuple[Span, Ledger], before: tuple[Span, Ledger], offers: Offers
) -> UsageReport:
    """Return the report of `provider`, or of the whole grid, from the ledgers of both periods."""
    figures, compared = (usage(ledger, span, offers, provider) for span, ledger in (now, before))
    return UsageReport(name=name, provider=provider, now=figures, before=compared, offers=offers)


def usage(ledger: Ledger, span: Span, offers: Offers, provider: str | None = None) -> Usage:
    """Return the figures of `provider`, or of the whole grid. The ledger has the same period."""
    jobs = tuple(_job_uses(ledger, span, provider))
    offering = offers.providers if provider is None else {provider}
    offered = {one: Sums(offered_s=offers.seconds(one, span)) for one in offering}

    def offered_in(part: Span) -> Capacity:
        return sum((offers.seconds(one, part) for one in offering), start=NOTHING)

    sums = [_sums(one) for one in jobs]
    totals = sum(sums, start=sum(offered.values(), start=Sums()))
    return Usage(
        span=span,
        jobs=jobs,
        totals=totals,
        customers=_ranked(zip((one.customer for one in jobs), sums, strict=True)),
        clusters=_ranked([*zip((one.cluster for one in jobs), sums, strict=True), *offered.items()]),
        ends=Counter(one.end for one in jobs if one.end is not None),
        open_jobs=sum(one.end is None for one in jobs),
        given_back=sum(provider in (None, one.provider) and ledger.in_period(one.block) for one in ledger.given_back),
        to_claim=Waits.of(one.to_claim_s for one in jobs),
        to_start=Waits.of(one.to_start_s for one in jobs),
        bars=tuple(_bars(ledger, jobs, span, offered_in)),
    )


def _job_uses(ledger: Ledger, span: Span, provider: str | None) -> Iterator[JobUse]:
    billed = {one.job_id: one.billed_minutes for one in ledger.settlements}  # also after the period
    settled_at = {one.job_id: one.at for one in ledger.settlements if ledger.in_period(one.block)}
    for row in records(chain_frame(ledger, provider)):
        if row["outcome"] == GIVEN_BACK:
            continue
        job = ledger.jobs[row["job_id"]]
        is_settled = row["outcome"] == SETTLED
        ran_until = _ran_until(job, billed.get(job.id, 0), span)
        yield JobUse(
            job_id=job.id,
            customer=row["customer"],
            cluster=row["provider"] if job.provider else NO_CLUSTER,
            settled_at=settled_at.get(job.id, 0),
            status=row["status"],
            end=_end(job, row) if is_settled else None,
            exit_status=job.exit_status if is_settled else 0,
            error=job.last_error if is_settled else "",
            requested_at=job.submitted_at,
            claimed_at=job.claimed_at,
            started_at=job.started_at,
            ended_at=job.ended_at,
            to_claim_s=_wait_s(job.submitted_at, job.claimed_at, span),
            to_start_s=_wait_s(job.submitted_at, job.started_at, span),
            billed_minutes=row["billed"],
            paid_wei=row["paid"],
            cut_wei=row["cut"],
            refunded_wei=row["refunded"],
            still_locked_wei=row["still_locked"],
            used_s=Capacity.of_job(job.definition) * overlap_s(job.started_at, ran_until, span),
            ran_until=ran_until,
            tx=row["tx"],
        )


def _ran_until(job: Job, billed_minutes: int, span: Span) -> int:
    """Return when the job stopped using its nodes, as the chain shows it; at most the end of the span.

    A supervisor that was down settles late. So a billed job ran no longer than its bill, and any job no longer than
    its credits allowed.
    """
    if not job.started_at:
        return 0
    most = billed_minutes or job.granted_minutes
    ended_at = job.ended_at if job.status.cold else span.until
    return min(ended_at, job.started_at + 60 * most, span.until)


def _wait_s(since: int, until: int, span: Span) -> int | None:
    return max(0, until - since) if span.since <= until < span.until else None


def _end(job: Job, row: dict[str, Any]) -> End:
    match job.status:
        case JobStatus.FINISHED:
            return End.FINISHED
        case JobStatus.OUT_OF_CREDITS:
            return End.OUT_OF_CREDITS
        case JobStatus.CANCELLED:
            return End.CANCELLED if job.started_at else End.CANCELLED_EARLY
        case JobStatus.FAILED if not job.started_at:
            return End.NOT_STARTED
        case JobStatus.FAILED:  # no minute is billed if the fault is the cluster's
            return End.FAILED if row["billed"] else End.CLUSTER_FAILED
        case _:
            return End.PANICKED


def _sums(one: JobUse) -> Sums:
    return Sums(
        jobs=int(one.end is not None),
        billed_minutes=one.billed_minutes,
        paid_wei=one.paid_wei,
        cut_wei=one.cut_wei,
        refunded_wei=one.refunded_wei,
        used_s=one.used_s,
    )


def _ranked(parts: Iterable[tuple[str, Sums]]) -> dict[str, Sums]:
    found: dict[str, Sums] = defaultdict(Sums)
    for who, sums in parts:
        found[who] += sums
    some = [(who, sums) for who, sums in found.items() if sums != Sums()]
    return dict(sorted(some, key=lambda one: (-one[1].cost_wei, -one[1].used_s.cpus, one[0])))


def _bars(ledger: Ledger, jobs: Sequence[JobUse], span: Span, offered: Callable[[Span], Capacity]) -> Iterator[Bar]:
    """Yield the days of the period, or equal parts of several days if it is long."""
    days = -(-(span.until - span.since) // DAY_S)
    step = DAY_S * -(-days // MOST_BARS)
    parts = [Span(since, min(since + step, span.until)) for since in range(span.since, span.until, step)]
    paid, cut, used = [0] * len(parts), [0] * len(parts), [NOTHING] * len(parts)
    for one in jobs:
        if one.settled_at:
            place = (one.settled_at - span.since) // step
            paid[place] += one.paid_wei
            cut[place] += one.cut_wei
        if one.used_s != NOTHING:
            size = Capacity.of_job(ledger.jobs[one.job_id].definition)
            first = (max(one.started_at, span.since) - span.since) // step
            for place in range(first, (one.ran_until - 1 - span.since) // step + 1):
                used[place] += size * overlap_s(one.started_at, one.ran_until, parts[place])
    for place, part in enumerate(parts):
        yield Bar(part.since, paid[place], cut[place], used_s=used[place], offered_s=offered(part))
