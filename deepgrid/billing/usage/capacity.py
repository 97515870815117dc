"""CPUs, memory and GPUs that clusters offered over time, and the same multiplied by seconds. Pure and exact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from deepgrid.billing.entries import Span
from deepgrid.lifecycle.job import Hardware, JobDefinition


@dataclass(frozen=True, slots=True)
class Capacity:
    """CPUs, MB of memory and GPUs. Where a name says seconds, each is multiplied by the seconds of its use."""

    cpus: int = 0
    mem_mb: int = 0
    gpus: int = 0

    @classmethod
    def of_nodes(cls, nodes: Hardware) -> Capacity:
        return cls(sum(nodes.cpus_per_node), sum(nodes.mem_per_node_mb), sum(nodes.gpus_per_node))

    @classmethod
    def of_job(cls, wanted: JobDefinition) -> Capacity:
        cpus = wanted.ntasks * wanted.cpus_per_task
        return cls(cpus, cpus * wanted.mem_per_cpu_mb, wanted.gpus)

    def __add__(self, other: Capacity) -> Capacity:
        return Capacity(self.cpus + other.cpus, self.mem_mb + other.mem_mb, self.gpus + other.gpus)

    def __mul__(self, seconds: int) -> Capacity:
        return Capacity(self.cpus * seconds, self.mem_mb * seconds, self.gpus * seconds)


NOTHING = Capacity()


def overlap_s(since: int, until: int, span: Span) -> int:
    """Return how many seconds between `since` and `until` are in the span."""
    return max(0, min(until, span.until) - max(since, span.since))


@dataclass(frozen=True, slots=True)
class OfferChange:
    """What a provider offers from `at` (unix seconds) on; nothing while it may not get jobs."""

    provider: str
    at: int
    offered: Capacity


@dataclass(frozen=True)
class Offers:
    """The offers of a period: changes by time, and the names of the clusters by address.

    The first change of each provider is its offer at the start. `assumed` lists providers whose offer is not known for
    a part of the period. For that part, their next known offer is used.
    """

    changes: tuple[OfferChange, ...] = ()
    names: Mapping[str, str] | None = None
    assumed: frozenset[str] = frozenset()

    @property
    def providers(self) -> set[str]:
        return {one.provider for one in self.changes}

    def name_of(self, provider: str) -> str:
        """Return the name of the provider's cluster, or its address if it has no name."""
        return (self.names or {}).get(provider, provider)

    def seconds(self, provider: str, span: Span) -> Capacity:
        """Return what the provider offered in the span, times seconds."""
        mine = [one for one in self.changes if one.provider == provider]
        ends = [*(one.at for one in mine[1:]), span.until]
        total = NOTHING
        for change, end in zip(mine, ends, strict=False):
            total += change.offered * overlap_s(change.at, end, span)
        return total
