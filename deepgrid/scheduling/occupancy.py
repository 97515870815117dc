"""Estimates when a cluster has room for one more job. Simulates its queue in the order in which claims are served.
Pure.

The simulation is pessimistic in time: jobs run to their limits, and no job overtakes another. It is optimistic
in space: it counts the resources of a cluster in total, not per node.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

from deepgrid.lifecycle.job import Hardware
from deepgrid.lifecycle.states import JobStatus
from deepgrid.scheduling.market import ClusterState, HotJob, Resources

OVERDUE_S = 60
"""A job that is past its limit is taken to end after this time."""


class Step(NamedTuple):
    """From `at` on (unix time), these amounts are free."""

    at: float
    cpus: float
    mem_mb: float
    gpus: float

    def holds(self, needs: Resources) -> bool:
        """Return whether this is enough."""
        return self.cpus >= needs.cpus and self.mem_mb >= needs.mem_mb and self.gpus >= needs.gpus


def capacity(hardware: Hardware) -> Resources:
    """Return everything that a cluster has."""
    return Resources(
        float(sum(hardware.cpus_per_node)), float(sum(hardware.mem_per_node_mb)), float(sum(hardware.gpus_per_node))
    )


def free_steps(cluster: ClusterState, now: int) -> list[Step]:
    """Return the free resources for the next job: from the start of the last queued job on, then more as jobs end.

    The steps are in order of time. Each has at least the resources of the previous one.
    """
    free = Step(float(now), *capacity(cluster.provider.hardware))
    ends: list[Step] = []
    for job in sorted(cluster.busy, key=lambda job: job.status is not JobStatus.RUNNING):
        needs = job.needs
        while job.status is not JobStatus.RUNNING and ends and not free.holds(needs):
            free = _after(free, heapq.heappop(ends))
        free = Step(free.at, free.cpus - needs.cpus, free.mem_mb - needs.mem_mb, free.gpus - needs.gpus)
        heapq.heappush(ends, Step(free.at + _seconds(job), *needs))
    steps = [free]
    for end in sorted(ends):
        free = _after(free, end)
        steps.append(free)
    return steps


def estimated_start(steps: list[Step], needs: Resources) -> float:
    """Unix time at which a job with these needs can start; infinity when it never can."""
    return next((step.at for step in steps if step.holds(needs)), float("inf"))


def _after(free: Step, ended: Step) -> Step:
    return Step(max(free.at, ended.at), free.cpus + ended.cpus, free.mem_mb + ended.mem_mb, free.gpus + ended.gpus)


def _seconds(job: HotJob) -> float:
    return 60.0 * job.remaining_minutes if job.remaining_minutes > 0 else OVERDUE_S
