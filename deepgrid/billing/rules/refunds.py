"""Finds customers whose jobs fail repeatedly by the cluster's fault.

A single failure may be bad luck. Repeated ones may mean that a customer can crash a node at the end of a job.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np

from deepgrid.billing.columns.claims import IS_SETTLED, Claims
from deepgrid.lifecycle.states import JobStatus

OFTEN = 3  # ends of one customer within the period
FAILURES = (int(JobStatus.FAILED), int(JobStatus.PANICKED))


@dataclass(frozen=True, slots=True)
class PaidBack:
    """A customer, the jobs that ran and were fully refunded, and their started minutes."""

    customer: str
    job_ids: tuple[int, ...]
    minutes: int


class Refunds:
    """Collects such jobs by customer."""

    def __init__(self) -> None:
        self._jobs: defaultdict[str, list[int]] = defaultdict(list)
        self._minutes: Counter[str] = Counter()

    def add(self, claims: Claims) -> None:
        """Add the jobs of some rows."""
        ran = (claims.of_job("started_at") > 0) | (claims.runs.minutes > 0)
        free = (claims.outcome == IS_SETTLED) & np.isin(claims.of_job("status"), FAILURES) & (claims.billed == 0)
        for row in np.flatnonzero(ran & free).tolist():
            customer = claims.tables.settlements["customer"][int(claims.settlement[row])].as_py()
            self._jobs[customer].append(int(claims.job_id[row]))
            self._minutes[customer] += int(claims.runs.minutes[row])

    def often(self) -> tuple[PaidBack, ...]:
        """Return customers with at least `OFTEN` such jobs, sorted by number."""
        often = [
            PaidBack(who, tuple(found), self._minutes[who]) for who, found in self._jobs.items() if len(found) >= OFTEN
        ]
        return tuple(sorted(often, key=lambda one: (-len(one.job_ids), one.customer)))
