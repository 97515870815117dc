"""`./run bench scheduling`: compares a round of the scheduler with the plain double loop in the same run.

The clusters are all different and have 1 to 512 nodes; the jobs of 200 customers have 2,000 shapes. Figures are
CPU seconds of one process, which uses one core. Exit status 1: a limit is exceeded, or the assignments differ from the
double loop where all prices differ and only price counts.
"""

from __future__ import annotations

import json
import math
import resource
import sys
import time
from collections.abc import Callable
from typing import TypeVar

from rich.console import Console
from rich.table import Table

from deepgrid.scheduling.market import Market, Round, SchedulerSettings, Weights
from deepgrid.scheduling.rounds.scheduler import Scheduler
from tests.bench.plain_match import Assignment, Cluster, match
from tests.scheduling.markets import NOW, clusters, jobs

CUSTOMERS, SHAPES, BUSY = 200, 2_000, 0.03
MOST_SECONDS, MOST_MB, LEAST_RATIO, MOST_GROWTH = 2.0, 1024.0, 50.0, 15.0
JOBS, CLUSTERS = (1_000, 10_000, 100_000), (10, 100, 1_000)
ONLY_PRICE = SchedulerSettings(
    weights=Weights(start=0, price=1, speed=0, reliability=0, spread=0), assign_ahead_s=math.inf
)
Result = TypeVar("Result")


def timed(call: Callable[[], Result]) -> tuple[float, Result]:
    """Return the CPU seconds of a call, and its result."""
    started = time.process_time()
    result = call()
    return time.process_time() - started, result


def one_round(job_count: int, cluster_count: int) -> tuple[float, float, Round]:
    """Return the CPU seconds of a first round and of its repetition, and the result."""
    pending = jobs(job_count, CUSTOMERS, min(SHAPES, job_count))
    market = Market(clusters(cluster_count, load=BUSY), NOW)
    scheduler = Scheduler()
    first, result = timed(lambda: scheduler.round(pending, market))
    again, _ = timed(lambda: scheduler.round(pending, market))
    return first, again, result


def against_double_loop() -> tuple[float, float, bool]:
    """Return the CPU seconds of the double loop and of a round on 2,000 jobs x 200 clusters, and whether they agree."""
    pending, states = jobs(2_000, CUSTOMERS, 400), clusters(200)
    plain_s, decisions = timed(lambda: match(pending, [Cluster(one.provider) for one in states]))
    plain = {one.job_id: one.provider for one in decisions if isinstance(one, Assignment)}
    ours_s = math.inf
    for _ in range(3):
        scheduler = Scheduler(ONLY_PRICE)
        seconds, result = timed(lambda: scheduler.round(pending, Market(states, NOW)))  # noqa: B023
        ours_s = min(ours_s, seconds)
    return plain_s, ours_s, plain == {one.job_id: one.provider for one in result.assignments}


def main() -> int:
    console = Console(stderr=True)
    seconds, again, result = one_round(10_000, 1_000)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    console.print(
        f"10,000 jobs x 1,000 clusters: {seconds:.2f} s, the next round {again:.2f} s, {peak_mb:.0f} MB;"
        f" {len(result.assignments):,} assigned, {len(result.waiting):,} wait"
    )
    plain_s, ours_s, same = against_double_loop()
    ratio = plain_s / ours_s
    console.print(
        f"2,000 jobs x 200 clusters, only price counts: double loop {plain_s:.2f} s, one round {ours_s:.3f} s:"
        f" {ratio:.0f} times faster, {'the same' if same else 'DIFFERENT'} assignments"
    )
    table = Table("jobs", *(f"{count:,} clusters" for count in CLUSTERS), title="Seconds of a round (the next one)")
    grown: dict[tuple[int, int], float] = {}
    for job_count in JOBS:
        row = []
        for cluster_count in CLUSTERS:
            first, next_, _ = one_round(job_count, cluster_count)
            grown[job_count, cluster_count] = first
            row.append(f"{first:.2f} ({next_:.2f})")
        table.add_row(f"{job_count:,}", *row)
    console.print(table)
    growth = max(grown[100_000, some] / grown[10_000, some] for some in CLUSTERS)
    console.print(f"Ten times the jobs take at most {growth:.1f} times as long.")
    figures = {"seconds_10k_x_1k": round(seconds, 2), "ratio": round(ratio, 1), "peak_mb": round(peak_mb)}
    print(json.dumps(figures))
    held = seconds <= MOST_SECONDS and peak_mb <= MOST_MB and ratio >= LEAST_RATIO and growth <= MOST_GROWTH
    return 0 if held and same else 1


if __name__ == "__main__":
    sys.exit(main())
