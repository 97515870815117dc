"""Groups Slurm's runs by claim: the first run that began, and the number of starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from deepgrid.billing.columns.entry_tables import MISSING, flags, numbers

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class RunGroups:
    """The runs of each row. `order` has the places of all runs, by claim and start; `left` and `count` are in it.

    `first` is the place of the first run that began; else of any run, or -1. `minutes` are its started minutes.
    """

    order: Array
    left: Array
    count: Array
    first: Array
    began: Array
    starts: Array
    minutes: Array

    def taken(self, rows: Array) -> RunGroups:
        """Return the groups of these rows."""
        columns = (self.left, self.count, self.first, self.began, self.starts, self.minutes)
        return RunGroups(self.order, *(column[rows] for column in columns))

    def places(self, rows: Array) -> tuple[Array, Array]:
        """Return the places of all runs of these rows, one row after the other, and the number of runs of each row."""
        counts = self.count[rows]
        ends = np.cumsum(counts)
        offsets = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)
        return self.order[np.repeat(self.left[rows], counts) + offsets], counts


def group_runs(runs: pa.Table, job_id: Array, claimed_at: Array) -> tuple[RunGroups, tuple[Array, Array]]:
    """Return the runs of each of these claims, and of claims that only Slurm knows. Their keys are returned too."""
    run_job, run_claim = numbers(runs, "job_id"), numbers(runs, "claimed_at")
    codes = _codes(np.concatenate([job_id, run_job]), np.concatenate([claimed_at, run_claim]))
    rows, mine = codes[: len(job_id)], codes[len(job_id) :]
    extra, places = np.unique(mine, return_index=True)
    unknown = ~np.isin(extra, rows)
    rows, only = np.concatenate([rows, extra[unknown]]), places[unknown]

    begins, ends, ran_s = (numbers(runs, name) for name in ("started_at", "ended_at", "ran_s"))
    begun = (begins != MISSING) & ~flags(runs, "guarded")
    order = np.lexsort((np.where(begun, begins, 0), ~begun, mine))
    left, right = (np.searchsorted(mine[order], rows, side) for side in ("left", "right"))
    counted = np.concatenate([[0], np.cumsum(begun[order])])
    starts = counted[right] - counted[left]
    first = np.full(len(rows), -1)
    first[right > left] = order[left[right > left]]

    seconds = np.where(ran_s == MISSING, ends - begins, ran_s)
    minutes = np.where(begun & (ends != MISSING), np.maximum(1, -(-seconds // 60)), 0)
    of_first = np.where(starts > 0, minutes[first], 0) if len(minutes) else np.zeros(len(rows), np.int64)
    groups = RunGroups(
        order=order, left=left, count=right - left, first=first, began=starts > 0, starts=starts, minutes=of_first
    )
    return groups, (run_job[only], run_claim[only])


def _codes(job_id: Array, claimed_at: Array) -> Array:
    """Return a number for each pair, without an overflow for any ids."""
    by_job = np.unique(job_id, return_inverse=True)[1]
    times, by_time = np.unique(claimed_at, return_inverse=True)
    return np.asarray(by_job * np.int64(max(1, len(times))) + by_time)
