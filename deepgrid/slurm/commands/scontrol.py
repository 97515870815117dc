"""`scontrol`: a partition, its nodes, and what a job can get of them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from deepgrid.lifecycle.job import Hardware
from deepgrid.slurm.commands.node_states import Use, unknown_words, use_of, why_not
from deepgrid.slurm.commands.query import COMMAND_PREFIX, limit_minutes, number

MOST_REASONS = 3  # in one sentence
MOST_CORES = 4096  # of a node
_SHOW = """scontrol show config | grep "^MaxMemPer"; scontrol -a -o show reservation
scontrol -a -o show partition "$1" && exec scontrol -a -o show node"""
_SLICE = re.compile(r"(?:^|[_.-])[0-9]g\.[0-9]{1,3}gb", re.ASCII | re.IGNORECASE)  # a part of a GPU, by NVIDIA's MIG
_LIMITS = ("MaxMemPerCPU", "MaxMemPerNode", "MaxCPUsPerNode")  # of a partition
_RESERVED_CORES = re.compile(r" NodeName=(\S+) CoreIDs=([0-9,-]+)")
_TEXTS = re.compile(r" (?:Reason|Comment|Extra|OS)=")  # of administrators, or with spaces


@dataclass(frozen=True, slots=True)
class Node:
    """A node: what a job can get of it, and whether it can run one. `gpus` counts whole GPUs by type, '' for none."""

    name: str
    words: tuple[str, ...]
    cpus: int
    memory_mb: int
    gpus: Mapping[str, int]
    slices: Mapping[str, int]
    reason: str = ""
    threads_per_core: int = 1

    @property
    def use(self) -> Use:
        """Whether the node can run a job."""
        return use_of(self.words)


@dataclass(frozen=True, slots=True)
class PartitionNodes:
    """A partition and the nodes that Slurm shows, ordered by name. `total` is the number of nodes by its configuration.

    A limit is 0 where there is none. Slurm gives a job that wants more memory per CPU more CPUs, and refuses jobs above
    the other limits. A partition that is exclusive gives jobs whole nodes.
    """

    state: str
    nodes: tuple[Node, ...] = ()
    total: int = 0
    max_mem_per_cpu_mb: int = 0
    max_mem_per_node_mb: int = 0
    max_cpus_per_node: int = 0
    max_minutes: int = 0
    is_exclusive: bool = False
    unknown_words: frozenset[str] = field(default_factory=frozenset)

    @property
    def is_up(self) -> bool:
        """Whether the partition takes jobs."""
        return self.state == "UP"

    @property
    def usable(self) -> Hardware:
        """Nodes that can run a job now or on demand."""
        return self._hardware(node for node in self.nodes if node.use is not Use.NOT)

    @property
    def all(self) -> Hardware:
        """All nodes that Slurm shows."""
        return self._hardware(self.nodes)

    @property
    def gpu_types(self) -> dict[str, int]:
        """Whole GPUs of all nodes, by type."""
        counts = Counter[str]()
        for node in self.nodes:
            counts.update({kind: count for kind, count in node.gpus.items() if kind})
        return dict(sorted(counts.items()))

    @property
    def slices(self) -> tuple[str, ...]:
        """Types of parts of GPUs, which are not offered."""
        return tuple(sorted({kind for node in self.nodes for kind in node.slices}))

    @property
    def threads_per_core(self) -> int:
        """Most threads of a core. Slurm gives jobs whole cores."""
        return max((node.threads_per_core for node in self.nodes), default=1)

    @property
    def hidden(self) -> int:
        """Number of nodes that Slurm hides: powered-down cloud nodes, where PrivateData lacks `cloud`."""
        return max(self.total - len(self.nodes), 0)

    def why_not(self) -> str:
        """Return why nodes cannot run jobs, most frequent reasons first; empty if all can."""
        said = Counter(_reason_words(node) for node in self.nodes if node.use is Use.NOT)
        parts = [f"{count} {reason}" for reason, count in said.most_common(MOST_REASONS)]
        more = sum(said.values()) - sum(count for _, count in said.most_common(MOST_REASONS))
        return "; ".join([*parts, *([f"{more} for other reasons"] if more else [])])

    def _hardware(self, nodes: Iterable[Node]) -> Hardware:
        figures = [(sum(node.gpus.values()), self._cpus(node), self._memory(node)) for node in nodes]
        gpus, cpus, memories = zip(*figures, strict=True) if figures else ((), (), ())
        return Hardware(gpus, cpus, memories)

    def _cpus(self, node: Node) -> int:
        return min(node.cpus, self.max_cpus_per_node or node.cpus)

    def _memory(self, node: Node) -> int:
        """Return the memory that a job may have on the node: of all CPUs that it may have there."""
        limit = self.max_mem_per_cpu_mb
        of_cpus = limit * self._cpus(node) if limit else node.memory_mb
        return min(node.memory_mb, of_cpus, self.max_mem_per_node_mb or node.memory_mb)


@dataclass(frozen=True, slots=True)
class Scontrol:
    """The partition, and what a job can get of its nodes."""

    program: ClassVar[str] = "scontrol"
    partition: str

    def argv(self) -> list[str]:
        """Return the command line."""
        return [*COMMAND_PREFIX, "sh", "-c", _SHOW, "sh", self.partition]

    def parse(self, text: str) -> PartitionNodes:
        """Return the partition; without a state if the answer has none."""
        limits: dict[str, int] = {}
        partition: Mapping[str, str] = {}
        nodes: dict[str, Node] = {}
        reserved: defaultdict[str, set[int]] = defaultdict(set)
        for line in text.split("\n"):
            fields = _fields(line)
            if line.startswith("ReservationName="):
                for name, cores in _RESERVED_CORES.findall(line) if fields.get("State") == "ACTIVE" else ():
                    reserved[name] |= _cores(cores)
            elif "NodeName" in fields and self.partition in fields.get("Partitions", "").split(","):
                nodes[fields["NodeName"]] = _node(fields, line)
            elif fields.get("PartitionName") == self.partition:
                partition = fields
            elif found := re.match(r"(MaxMemPer(?:CPU|Node))\s*=\s*([0-9]{1,9})\s*$", line):
                limits[found[1]] = int(found[2])
        own = {name: limit for name in _LIMITS if (limit := number(partition.get(name, ""))) and limit > 0}
        limits = own if own.keys() & set(_LIMITS[:2]) else {**limits, **own}  # Slurm has one limit of memory
        names = sorted(nodes, key=lambda name: (_natural(name), name))
        shown = tuple(_beside_reservation(nodes[name], len(reserved[name])) for name in names)
        unknown = frozenset(word for node in shown for word in unknown_words(node.words))
        return PartitionNodes(
            state=partition.get("State", ""),
            nodes=shown,
            total=number(partition.get("TotalNodes", "")) or 0,
            max_mem_per_cpu_mb=limits.get("MaxMemPerCPU", 0),
            max_mem_per_node_mb=limits.get("MaxMemPerNode", 0),
            max_cpus_per_node=limits.get("MaxCPUsPerNode", 0),
            max_minutes=limit_minutes(partition.get("MaxTime", "")) or 0,
            is_exclusive=partition.get("OverSubscribe") == "EXCLUSIVE" or partition.get("Exclusive") == "NODE",
            unknown_words=unknown,
        )


def _fields(line: str) -> dict[str, str]:
    """Return the words `Name=value` of a line before its free text. The first one of each name counts."""
    fields: dict[str, str] = {}
    os_free = re.sub(r" OS=.*? {2}", "  ", line)
    for word in _TEXTS.split(os_free)[0].split():
        name, equals, value = word.partition("=")
        if equals:
            fields.setdefault(name, value)
    return fields


def _node(fields: Mapping[str, str], line: str) -> Node:
    # Old versions mark a node that does not respond with a star.
    state = fields.get("State", "")
    words = [word for word in state.replace("*", "+NOT_RESPONDING").split("+") if word]
    cpus = number(fields.get("CPUEfctv", "")) or number(fields.get("CPUTot", "")) or 0
    memory = (number(fields.get("RealMemory", "")) or 0) - (number(fields.get("MemSpecLimit", "")) or 0)
    reason = re.search(r" Reason=(.*?)(?: \[[^][]*\])?(?: (?:Comment|Extra)=.*)?\s*$", line)
    gpus, slices = gpus_of(fields.get("Gres", ""))
    said = " ".join(reason[1].split())[:200] if reason else ""
    threads = max(number(fields.get("ThreadsPerCore", "")) or 1, 1)
    return Node(fields["NodeName"], tuple(words), max(cpus, 0), max(memory, 0), gpus, slices, said, threads)


def _cores(text: str) -> set[int]:
    """Return the numbers of a list of cores: `0-1,4`."""
    ranges = (part.partition("-") for part in text.split(","))
    bounds = ((number(first), number(last or first)) for first, _, last in ranges)
    numbers = [(first, min(last, MOST_CORES)) for first, last in bounds if first is not None and last is not None]
    return {core for first, last in numbers for core in range(first, last + 1)}


def _beside_reservation(node: Node, cores: int) -> Node:
    """Return what a reservation of these cores leaves. Slurm marks the node as if it were reserved as a whole."""
    if not cores:
        return node
    left = max(node.cpus - cores * node.threads_per_core, 0)
    words = [word for word in node.words if word != "RESERVED"]
    return replace(node, cpus=left, words=(*words, *([] if left else ["RESERVED"])))


def _reason_words(node: Node) -> str:
    return f"{why_not(node.words)} ({node.reason})" if node.reason else why_not(node.words)


def gpus_of(gres: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return whole GPUs and parts of GPUs by type, of a node's `Gres`: `gpu:a100:4(S:0-1),gpu:2`.

    Shards (`shard:8`) and GPUs that jobs do not consume (`gpu:a100:no_consume:4`) are neither.
    """
    whole, slices = Counter[str](), Counter[str]()
    for kind, count in _gpus(gres):
        (slices if _SLICE.search(kind) else whole)[kind] += count
    return dict(whole), dict(slices)


def _gpus(gres: str) -> Iterator[tuple[str, int]]:
    for item in re.sub(r"\([^)]*\)", "", gres).split(","):
        # Of two fields, the first is the type, even if it consists of digits (`gpu:3090:2`). A number alone is the
        # count.
        found = re.fullmatch(r"gpu(?::([^:]+))??(?::([0-9]{1,6}))?", item.strip())
        if found and found[1] != "no_consume":
            yield found[1] or "", int(found[2] or 1)


def _natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """Return a sort key that puts `n2` before `n10`."""
    parts = re.split(r"([0-9]{1,18})", name)  # every second part is a number
    return tuple((0, int(part)) if place % 2 else (1, part) for place, part in enumerate(parts) if part)
