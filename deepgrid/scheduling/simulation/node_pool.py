"""Free CPUs, memory and GPUs of the nodes of one cluster.

Tasks are indivisible. GPUs are for the whole job, on nodes that host its tasks, as in `scheduling.fit`.
"""

from __future__ import annotations

from dataclasses import dataclass

from deepgrid.lifecycle.job import Hardware, JobDefinition


@dataclass(frozen=True, slots=True)
class Share:
    """What a job takes of one node. Memory is in MB."""

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
        """All nodes, free."""
        return cls(list(hardware.cpus_per_node), list(hardware.mem_per_node_mb), list(hardware.gpus_per_node))

    def copy(self) -> NodePool:
        return NodePool(self.cpus.copy(), self.mem_mb.copy(), self.gpus.copy())

    def common(self, other: NodePool) -> NodePool:
        """What is free in both pools."""
        return NodePool(
            [min(pair) for pair in zip(self.cpus, other.cpus, strict=True)],
            [min(pair) for pair in zip(self.mem_mb, other.mem_mb, strict=True)],
            [min(pair) for pair in zip(self.gpus, other.gpus, strict=True)],
        )

    def place(self, need: JobDefinition) -> Placement | None:
        """Nodes for the job, None only if it does not fit. Takes nothing.

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
        """Number of tasks that each node can host."""
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
