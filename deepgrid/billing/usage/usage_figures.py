"""Figures of one party's use over a period, from the frames of its books. Money is an exact int of wei.

Money belongs to the period of the block that settled the job, as in the books. Time in use belongs to the period in
which it passed. A wait belongs to the period in which it ended.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from deepgrid.billing.entries import Ledger, Span
from deepgrid.billing.period import DAY_S
from deepgrid.billing.usage.capacity import NOTHING, Capacity, Offers, overlap_s
from deepgrid.billing.usage.job_uses import End, JobUse, job_uses
from deepgrid.billing.usage.sums import Sums

MOST_BARS = 62  # of a plot over time


@dataclass(frozen=True, slots=True)
class Waits:
    """Waits in seconds: the median, the 90th percentile, the longest. None without waits."""

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
    """The figures of a period. Customers and clusters are addresses, the one with the highest cost first.

    `ends` counts jobs by their end and its cause, if it is a known one.
    """

    span: Span
    jobs: tuple[JobUse, ...]
    totals: Sums
    customers: dict[str, Sums]
    clusters: dict[str, Sums]
    ends: Counter[tuple[End, str]]
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
    jobs = tuple(job_uses(ledger, span, provider))
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
        customers=_rank(zip((one.customer for one in jobs), sums, strict=True)),
        clusters=_rank([*zip((one.cluster for one in jobs), sums, strict=True), *offered.items()]),
        ends=Counter((one.end, one.cause) for one in jobs if one.end is not None),
        open_jobs=sum(one.end is None for one in jobs),
        given_back=sum(provider in (None, one.provider) and ledger.in_period(one.block) for one in ledger.given_back),
        to_claim=Waits.of(one.to_claim_s for one in jobs),
        to_start=Waits.of(one.to_start_s for one in jobs),
        bars=tuple(_bars(ledger, jobs, span, offered_in)),
    )


def _sums(one: JobUse) -> Sums:
    return Sums(
        jobs=int(one.end is not None),
        billed_minutes=one.billed_minutes,
        paid_wei=one.paid_wei,
        cut_wei=one.cut_wei,
        refunded_wei=one.refunded_wei,
        used_s=one.used_s,
    )


def _rank(parts: Iterable[tuple[str, Sums]]) -> dict[str, Sums]:
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
