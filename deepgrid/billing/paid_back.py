"""Finds customers whose jobs fail repeatedly by the cluster's fault. Each such failure is refunded.

A single failure may be bad luck. Repeated ones may mean that a customer can crash a node at the end of a job.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import pandas as pd

from deepgrid.billing.entries import Ledger
from deepgrid.billing.frames import SETTLED
from deepgrid.billing.join import records

OFTEN = 3  # ends of one customer within the period
FAILURES = ("failed", "panicked")


@dataclass(frozen=True, slots=True)
class PaidBack:
    """A customer, the jobs that ran and were fully refunded, and their started minutes."""

    customer: str
    job_ids: tuple[int, ...]
    minutes: int


def paid_back(rows: pd.DataFrame, ledger: Ledger) -> tuple[PaidBack, ...]:
    """Customers with at least `OFTEN` such jobs, the most first."""
    jobs: dict[str, list[int]] = defaultdict(list)
    minutes: dict[str, int] = defaultdict(int)
    for row in records(rows):
        if row["outcome"] != SETTLED or row["status"] not in FAILURES or row["billed"] > 0:
            continue
        if ledger.jobs[row["job_id"]].started_at > 0 or row["ran"] > 0:
            jobs[row["customer"]].append(row["job_id"])
            minutes[row["customer"]] += row["ran"]
    often = [PaidBack(who, tuple(found), minutes[who]) for who, found in jobs.items() if len(found) >= OFTEN]
    return tuple(sorted(often, key=lambda one: (-len(one.job_ids), one.customer)))
