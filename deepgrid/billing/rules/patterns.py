"""Patterns over all bills of a provider, and of each of its customers, that no single bill shows.

* A bill may differ from the run by the tolerance, because clocks differ. Honest differences fall on both sides. A
  provider that adds a minute to each bill has them on one side only. So the signs of small differences are counted, and
  an excess of too high bills names each of them.
* Started minutes are billed. So an end a moment after a minute began earns a whole minute. Where many more jobs end
  there than chance allows, the pattern is named as a hint. Jobs of a fixed length end like that, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deepgrid.billing.columns.claim_record import ClaimRecord
from deepgrid.billing.columns.claims import IS_SETTLED, Claims, records
from deepgrid.billing.columns.entry_tables import MISSING, numbers, words
from deepgrid.billing.rules.kinds import Finding, Kind, Severity, severity_of

Array = np.ndarray[Any, Any]
LEAST_BILLS = 5
EXCESS = 5  # the square of how many standard deviations the signs must be off
LATE_S = 3  # an end within these seconds after a minute began is late
LEAST_ENDS = 100
LATE_SHARE = 4  # in times of the share that chance gives
EVERYBODY = ""  # in place of a customer, for all customers of a provider
NAMED = 10


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern in the bills of a provider to one customer, or to all (`customer` is empty)."""

    kind: Kind
    provider: str
    customer: str
    jobs: int
    wei: int
    evidence: str
    job_ids: tuple[int, ...] = ()

    @property
    def severity(self) -> Severity:
        return severity_of(self.kind)


@dataclass
class _Group:
    """Counts of one customer's bills, or of all."""

    bills: int = 0  # that differ by the tolerance at most
    higher: int = 0
    lower: int = 0
    minutes: int = 0
    ends: int = 0
    late: int = 0
    late_wei: int = 0
    too_much: list[Finding] = field(default_factory=list)

    def add(self, other: _Group) -> None:
        self.bills += other.bills
        self.higher += other.higher
        self.lower += other.lower
        self.minutes += other.minutes
        self.ends += other.ends
        self.late += other.late
        self.late_wei += other.late_wei
        self.too_much += other.too_much


class BillPatterns:
    """Collects small differences and ends over any number of windows."""

    def __init__(self, tolerance_minutes: int) -> None:
        self._tolerance = tolerance_minutes
        self._customers: defaultdict[tuple[str, str], _Group] = defaultdict(_Group)

    def add(self, claims: Claims) -> None:
        """Count the settled rows that ran."""
        rows = np.flatnonzero((claims.outcome == IS_SETTLED) & claims.runs.began & (claims.runs.minutes > 0))
        off = (claims.billed - claims.expected)[rows]
        is_small = np.abs(off) <= self._tolerance
        is_late, rates = _is_late(claims, rows), claims.tables.rate_wei
        provider, providers = words(claims.tables.settlements, "provider")
        customer, customers = words(claims.tables.settlements, "customer")
        ends = claims.settlement[rows]
        keys, group = np.unique(provider[ends] * max(1, len(customers)) + customer[ends], return_inverse=True)

        def count(chosen: Array) -> list[int]:
            return [int(one) for one in np.bincount(group[chosen], minlength=len(keys))]

        late_wei = np.zeros(len(keys), dtype=object)
        np.add.at(late_wei, group[is_late], rates[claims.job[rows[is_late]]])
        found = [self._customers[providers[key // len(customers)], customers[key % len(customers)]] for key in keys]
        figures = zip(
            count(is_small),
            count(is_small & (off > 0)),
            count(is_small & (off < 0)),
            np.bincount(group[is_small], off[is_small], len(keys)),
            count(group >= 0),
            count(is_late),
            late_wei,
            strict=True,
        )
        for one, (bills, higher, lower, minutes, all_ends, late, wei) in zip(found, figures, strict=True):
            one.add(_Group(bills, higher, lower, int(minutes), all_ends, late, wei))
        high = np.flatnonzero(is_small & (off > 0))
        for at, claim in zip(high.tolist(), records(claims, rows[high]), strict=True):
            found[group[at]].too_much.append(_finding(claim))

    def too_much(self) -> Iterator[Finding]:
        """Yield each bill that is too high by a little, where this is a pattern."""
        everybody = self._of_providers()
        for (provider, _), group in self._customers.items():
            if _is_one_sided(group) or _is_one_sided(everybody[provider]):
                yield from group.too_much

    def patterns(self) -> tuple[Pattern, ...]:
        """Return the patterns of each provider, and then of its customers."""
        groups = {(provider, EVERYBODY): group for provider, group in self._of_providers().items()}
        found: list[Pattern] = []
        for (provider, customer), group in sorted({**groups, **self._customers}.items(), key=lambda one: one[0]):
            found += _patterns(provider, customer, group)
        return tuple(found)

    def _of_providers(self) -> dict[str, _Group]:
        everybody: defaultdict[str, _Group] = defaultdict(_Group)
        for (provider, _), group in self._customers.items():
            everybody[provider].add(group)
        return everybody


def _patterns(provider: str, customer: str, group: _Group) -> Iterator[Pattern]:
    if _is_one_sided(group):
        mean = f"{group.minutes / group.bills:+.2f}"  # of minutes, for people
        evidence = (
            f"{group.higher} of {group.bills} bills are too high within the tolerance and {group.lower} too low,"
            f" {mean} minutes on average"
        )
        wei, ids = sum(one.wei for one in group.too_much), tuple(one.job_id for one in group.too_much[:NAMED])
        yield Pattern(Kind.A_MINUTE_TOO_MUCH, provider, customer, group.higher, wei, evidence, ids)
    if group.ends >= LEAST_ENDS and 60 * group.late >= LATE_SHARE * LATE_S * group.ends:
        evidence = (
            f"{group.late} of {group.ends} jobs ended within {LATE_S} seconds after a minute began; by chance about"
            f" {group.ends * LATE_S // 60} do"
        )
        yield Pattern(Kind.LATE_ENDS, provider, customer, group.late, group.late_wei, evidence)


def _is_late(claims: Claims, rows: Array) -> Array:
    runs, first = claims.tables.runs, claims.runs.first[rows]
    begins, ends, ran_s = (numbers(runs, name)[first] for name in ("started_at", "ended_at", "ran_s"))
    seconds = np.where(ran_s == MISSING, ends - begins, ran_s)
    return np.asarray((seconds > 60) & ((seconds - 1) % 60 < LATE_S))


def _is_one_sided(group: _Group) -> bool:
    excess = group.higher - group.lower
    return group.higher >= LEAST_BILLS and excess > 0 and excess**2 >= EXCESS * (group.higher + group.lower)


def _finding(claim: ClaimRecord) -> Finding:
    evidence = (
        f"billed {claim.billed} {'minute' if claim.billed == 1 else 'minutes'}, {claim.expected} expected: within the"
        " tolerance, and most small differences of this provider are too high"
    )
    wei = claim.cost_of(claim.billed) - claim.cost_of(claim.expected)
    return Finding(claim.job_id, claim.claimed_at, Kind.A_MINUTE_TOO_MUCH, evidence, claim.tx, wei)
