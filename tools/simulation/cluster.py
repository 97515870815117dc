"""A simulated cluster: the free part of its nodes, and its queue, first come, first served, with EASY backfill.

Tasks are indivisible. GPUs are for the whole job, on nodes that host its tasks, as in `scheduling.fit`.

The first job of the queue that cannot start gets a reservation: the earliest time at which it fits if all
running jobs use their full time limits. A later job may start before it if that does not delay the
reservation: it ends before, or it takes nodes that the first job does not need.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass

from deepgrid.lifecycle.job import Hardware, JobDefinition, Provider

BACKFILL_DEPTH = 100
"""How many queued jobs a pass considers, as `bf_max_job_test` of Slurm does."""


@dataclass(frozen=True, slots=True)
class Share:
    """The part of one node that a job takes. Memory is in MB."""

    node: int
    cpus: int
    mem_mb: int
    gpus: int


Placement = tuple[Share, ...]


class NodePool:
    """The free part of each node."""

    def __init__(self, cpus: list[int], mem_mb: list[int], gpus: list[int]) -> None:
        self.cpus, self.mem_mb, self.gpus = cpus, mem_mb, gpus
        self.free_cpus, self.free_gpus = sum(cpus), sum(gpus)

    @classmethod
    def of(cls, hardware: Hardware) -> NodePool:
        """Return a pool with all nodes free."""
        return cls(list(hardware.cpus_per_node), list(hardware.mem_per_node_mb), list(hardware.gpus_per_node))

    def copy(self) -> NodePool:
        return NodePool(self.cpus.copy(), self.mem_mb.copy(), self.gpus.copy())

    def common(self, other: NodePool) -> NodePool:
        """Return the parts that are free in both pools."""
        return NodePool(
            [min(pair) for pair in zip(self.cpus, other.cpus, strict=True)],
            [min(pair) for pair in zip(self.mem_mb, other.mem_mb, strict=True)],
            [min(pair) for pair in zip(self.gpus, other.gpus, strict=True)],
        )

    def place(self, need: JobDefinition) -> Placement | None:
        """Return nodes for the job, None only if it does not fit. Takes nothing.

        Jobs without GPUs keep away from nodes with free GPUs and prefer nearly full nodes.
        """
        if need.ntasks * need.cpus_per_task > self.free_cpus or need.gpus > self.free_gpus:
            return None
        slots = self._slots(need)
        if sum(slots) < need.ntasks:
            return None
        nodes = [node for node, room in enumerate(slots) if room]
        if not need.gpus:
            nodes.sort(key=lambda node: (self.gpus[node], slots[node]))
            return self._shares(need, nodes, slots, ahead=0)
        nodes.sort(key=lambda node: -self.gpus[node])
        reached, ahead = 0, 0
        while reached < need.gpus:
            if ahead == min(need.ntasks, len(nodes)):
                return None
            reached += self.gpus[nodes[ahead]]
            ahead += 1
        return self._shares(need, nodes, slots, ahead)

    def _slots(self, need: JobDefinition) -> list[int]:
        """Return the number of tasks that each node can host."""
        task_cpus, task_mem = need.cpus_per_task, need.cpus_per_task * need.mem_per_cpu_mb
        if not task_mem:
            return [cpus // task_cpus for cpus in self.cpus]
        return [min(cpus // task_cpus, mem // task_mem) for cpus, mem in zip(self.cpus, self.mem_mb, strict=True)]

    def _shares(self, need: JobDefinition, nodes: list[int], slots: list[int], ahead: int) -> Placement:
        """Put one task on each of the first `ahead` nodes, and the others wherever there is room, in order."""
        left, gpus_left = need.ntasks - ahead, need.gpus
        shares: list[Share] = []
        for position, node in enumerate(nodes):
            first = 1 if position < ahead else 0
            more = min(left, slots[node] - first)
            left -= more
            if first + more:
                gpus = min(gpus_left, self.gpus[node])
                gpus_left -= gpus
                cpus = (first + more) * need.cpus_per_task
                shares.append(Share(node, cpus, cpus * need.mem_per_cpu_mb, gpus))
        return tuple(shares)

    def take(self, placement: Placement) -> None:
        """Occupy the placement. Raises ValueError if a node would be over-used."""
        for share in placement:
            self.cpus[share.node] -= share.cpus
            self.mem_mb[share.node] -= share.mem_mb
            self.gpus[share.node] -= share.gpus
            self.free_cpus -= share.cpus
            self.free_gpus -= share.gpus
            if min(self.cpus[share.node], self.mem_mb[share.node], self.gpus[share.node]) < 0:
                raise ValueError(f"Node {share.node} is over-used.")

    def give_back(self, placement: Placement) -> None:
        """Free the placement."""
        for share in placement:
            self.cpus[share.node] += share.cpus
            self.mem_mb[share.node] += share.mem_mb
            self.gpus[share.node] += share.gpus
            self.free_cpus += share.cpus
            self.free_gpus += share.gpus


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
    """The latest start of the queue's first job, and the nodes that it leaves free then."""

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
        """Start all jobs that may start at `now`, in the order of the queue."""
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
        beside: NodePool | None = None  # free now, and when the reserved job has started
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
