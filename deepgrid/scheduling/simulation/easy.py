"""The queue of one simulated cluster: first come, first served, with EASY backfill.

The first job of the queue that cannot start gets a reservation: the earliest time at which it fits if all
running jobs use their full time limits. A later job may start before it if that does not delay the
reservation: it ends before, or it takes nodes that the first job does not need.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass

from deepgrid.lifecycle.job import JobDefinition, Provider
from deepgrid.scheduling.simulation.node_pool import NodePool, Placement

BACKFILL_DEPTH = 100
"""How many queued jobs a pass considers, as `bf_max_job_test` of Slurm does."""


@dataclass(frozen=True, slots=True)
class Queued:
    """A job in a cluster's queue with its time limit in seconds."""

    job_id: int
    need: JobDefinition
    limit_s: int


@dataclass(frozen=True, slots=True)
class Running:
    """A job on nodes. It is stopped at `limit_at`."""

    queued: Queued
    placement: Placement
    started_at: int

    @property
    def limit_at(self) -> int:
        return self.started_at + self.queued.limit_s


@dataclass(frozen=True, slots=True)
class Reservation:
    """When the first job of the queue starts at the latest, and what it leaves free then."""

    job_id: int
    starts_at: int
    left: NodePool


class SimulatedCluster:
    """A cluster with its nodes, its queue and its running jobs."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.pool = NodePool.of(provider.hardware)
        self.queue: list[Queued] = []
        self.running: dict[int, Running] = {}
        self.reservation: Reservation | None = None
        self._by_limit: list[tuple[int, int]] = []  # (limit_at, job id) of the running jobs, sorted

    def submit(self, job: Queued) -> None:
        """Append a job to the queue."""
        self.queue.append(job)

    def end(self, job_id: int) -> None:
        """End a running job and free its nodes."""
        ended = self.running.pop(job_id)
        self._by_limit.remove((ended.limit_at, job_id))
        self.pool.give_back(ended.placement)

    def start_jobs(self, now: int) -> list[Running]:
        """Start what may start at `now`, in the order of the queue."""
        started: list[Running] = []
        while self.queue and (placement := self.pool.place(self.queue[0].need)):
            started.append(self._start(self.queue.pop(0), placement, now))
        self.reservation = self._reserve(self.queue[0]) if self.queue else None
        if self.reservation is not None and self.pool.free_cpus:
            started += self._backfill(self.reservation, now)
        return started

    def _start(self, job: Queued, placement: Placement, now: int) -> Running:
        self.pool.take(placement)
        running = Running(job, placement, now)
        self.running[job.job_id] = running
        insort(self._by_limit, (running.limit_at, job.job_id))
        return running

    def _reserve(self, first: Queued) -> Reservation:
        pool = self.pool.copy()
        for limit_at, job_id in self._by_limit:
            pool.give_back(self.running[job_id].placement)
            placement = pool.place(first.need)
            if placement is not None:
                pool.take(placement)
                return Reservation(first.job_id, limit_at, pool)
        raise ValueError(f"Job {first.job_id} does not fit the cluster {self.provider.name}.")

    def _backfill(self, reservation: Reservation, now: int) -> list[Running]:
        started: list[Running] = []
        misfits: set[tuple[JobDefinition, bool]] = set()  # free nodes only become fewer during a pass
        beside: NodePool | None = None  # free now, and also when the reserved job has started
        for job in self.queue[1:BACKFILL_DEPTH]:
            in_time = now + job.limit_s <= reservation.starts_at
            if (job.need, in_time) in misfits:
                continue
            if not in_time and beside is None:
                beside = self.pool.common(reservation.left)
            placement = (self.pool if in_time or beside is None else beside).place(job.need)
            if placement is None:
                misfits.add((job.need, in_time))
                continue
            if not in_time:
                reservation.left.take(placement)
            started.append(self._start(job, placement, now))
            beside = None
            if not self.pool.free_cpus:
                break
        if started:
            begun = {running.queued.job_id for running in started}
            self.queue = [job for job in self.queue if job.job_id not in begun]
        return started
