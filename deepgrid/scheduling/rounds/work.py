"""Bounds the work of a round: what jobs ask for is compared with the clusters in turns of their customers. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from deepgrid.lifecycle.job import Job
from deepgrid.scheduling.rounds.candidates import Asks, asks_of

MOST_CHECKS = 20_000
"""Comparisons with all clusters in one round: one for the nodes, and one for each condition on labels."""


def too_much(jobs: Sequence[Job], known: Collection[Asks], most: int = MOST_CHECKS) -> set[int]:
    """The ids of jobs that are not compared in this round. Customers take turns, each with its oldest jobs first.

    What is `known` from the last round needs one comparison. A request of several jobs counts for the oldest one.
    """
    if sum(1 + len(job.definition.uses) + len(job.definition.affinity) for job in jobs) <= most:
        return set()
    requests: dict[Asks, list[Job]] = {}
    for job in sorted(jobs, key=lambda job: (job.submitted_at, job.id)):
        requests.setdefault(asks_of(job), []).append(job)
    spent: Counter[str] = Counter()
    turns = []
    for asks, same in requests.items():
        checks = 1 if asks in known else 1 + len(asks[1])
        spent[same[0].customer] += checks
        turns.append((spent[same[0].customer], checks, same))
    left: set[int] = set()
    for _, checks, same in sorted(turns, key=lambda turn: turn[0]):
        most -= checks
        if most < 0:
            left.update(job.id for job in same)
    return left
