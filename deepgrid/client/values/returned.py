"""Values that the client returns. They are frozen; amounts are `Decimal` credits, times are aware datetimes in UTC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import overload

from deepgrid.billing.formulas import rate_wei_per_minute
from deepgrid.client.values.amounts import credits_of
from deepgrid.client.values.html import clusters_html, quote_html
from deepgrid.lifecycle.job import JobDefinition, Provider
from deepgrid.lifecycle.states import JobStatus

MB_PER_GB = 1000


@dataclass(frozen=True, slots=True)
class Bill:
    """The bill of a job that is over. `cost` + `refund` = `locked`; `to_provider` + `platform_cut` = `cost`.

    Attributes:
        rate: Credits per minute; 0 if no cluster was assigned.
        minutes: Billed minutes; None for a job without a price.
        cost: Credits that the job cost.
        to_provider: Credits that the provider got.
        platform_cut: Credits that the platform got.
        refund: Credits that came back.
        locked: Credits that were locked.
    """

    rate: Decimal
    minutes: int | None
    cost: Decimal
    to_provider: Decimal
    platform_cut: Decimal
    refund: Decimal
    locked: Decimal


@dataclass(frozen=True, slots=True)
class Step:
    """A change of a job's state.

    Attributes:
        status: The new state.
        at: Time of the block.
        words: What happened, such as `claimed by alpha`.
        transaction: Hash of the transaction.
    """

    status: JobStatus
    at: datetime
    words: str
    transaction: str


@dataclass(frozen=True, slots=True)
class JobChange:
    """A change of one of the customer's jobs, as `watch` of the grid gives it.

    Attributes:
        job_id: Number of the job.
        status: Its new state. A new job is pending.
        at: Time of the block.
        transaction: Hash of the transaction.
        cursor: Place on the chain after this change. `watch(cursor)` goes on there.
    """

    job_id: int
    status: JobStatus
    at: datetime
    transaction: str
    cursor: str


@dataclass(frozen=True, slots=True)
class Remark:
    """A remark of the meta-scheduler or of a cluster on a job. Strangers write its text.

    Attributes:
        at: When it was published.
        kind: A word, such as `waiting`, `assigned` or `refused`.
        text: The remark, on one line.
        author: Address that signed it.
    """

    at: datetime
    kind: str
    text: str
    author: str = ""


@dataclass(frozen=True, slots=True)
class ViewMessage:
    """A sentence of the client on a job that is watched: an outage, a request to cancel it, a new start of its output.

    Attributes:
        at: When it happened, or when the client learned it.
        text: The sentence.
    """

    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a job's output, without its end and without control sequences other than colours.

    Attributes:
        arrived: When this client got the line.
        text: The line.
        claim: 1 for the first cluster that ran the job while this log was read, 2 for the next one.
    """

    arrived: datetime
    text: str
    claim: int = 1


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster of the grid.

    Attributes:
        name: Its `name` label, else its address. Strangers choose names; the address is what identifies it.
        address: Address of its provider.
        nodes: Number of nodes.
        cpus: CPUs of all nodes.
        memory_mb: Memory of all nodes in MB.
        gpus: GPUs of all nodes.
        cpu_price: Credits per CPU and minute.
        memory_price: Credits per GB (1,000 MB) of memory and minute.
        gpu_price: Credits per GPU and minute.
        labels: Its labels. Of several with one key, the first.
        approved: Whether the operator approved it.
        banned: Whether the operator banned it.
    """

    provider: Provider

    @property
    def name(self) -> str:
        return self.provider.name

    @property
    def address(self) -> str:
        return self.provider.address

    @property
    def nodes(self) -> int:
        return self.provider.hardware.nodes

    @property
    def cpus(self) -> int:
        return sum(self.provider.hardware.cpus_per_node)

    @property
    def memory_mb(self) -> int:
        return sum(self.provider.hardware.mem_per_node_mb)

    @property
    def gpus(self) -> int:
        return sum(self.provider.hardware.gpus_per_node)

    @property
    def cpu_price(self) -> Decimal:
        return credits_of(self.provider.prices.cpu_wei_per_minute)

    @property
    def memory_price(self) -> Decimal:
        return credits_of(self.provider.prices.mem_wei_per_mb_minute * MB_PER_GB)

    @property
    def gpu_price(self) -> Decimal:
        return credits_of(self.provider.prices.gpu_wei_per_minute)

    @property
    def labels(self) -> dict[str, str]:
        return {label.key: label.value for label in reversed(self.provider.labels)}

    @property
    def approved(self) -> bool:
        return self.provider.approved

    @property
    def banned(self) -> bool:
        return self.provider.banned

    def rate(self, *, tasks: int = 1, cpus_per_task: int = 1, memory_mb_per_cpu: int = 1, gpus: int = 0) -> Decimal:
        """Credits per minute for a job of this shape."""
        shape = JobDefinition(gpus, memory_mb_per_cpu, cpus_per_task, tasks, "")
        return credits_of(rate_wei_per_minute(shape, self.provider.prices))


class Clusters(Sequence[Cluster]):
    """The clusters of a grid, in the order of their first registration."""

    def __init__(self, clusters: Sequence[Cluster]) -> None:
        self._clusters = tuple(clusters)

    @overload
    def __getitem__(self, index: int) -> Cluster: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Cluster, ...]: ...

    def __getitem__(self, index: int | slice) -> Cluster | tuple[Cluster, ...]:
        return self._clusters[index]

    def __len__(self) -> int:
        return len(self._clusters)

    def __iter__(self) -> Iterator[Cluster]:
        return iter(self._clusters)

    def __repr__(self) -> str:
        return f"Clusters({', '.join(cluster.name for cluster in self)})"

    def _repr_html_(self) -> str:
        return clusters_html(self)


@dataclass(frozen=True, slots=True)
class Offer:
    """What one cluster charges for a job.

    Attributes:
        cluster: Name of the cluster.
        address: Address of its provider.
        rate: Credits per minute.
        cost: Credits for the minutes of the quote.
    """

    cluster: str
    address: str
    rate: Decimal
    cost: Decimal


@dataclass(frozen=True, slots=True)
class Misfit:
    """A cluster that cannot run a job, and why."""

    cluster: str
    address: str
    why: str


@dataclass(frozen=True, slots=True)
class Quote:
    """Prices of a job at the clusters of the grid, before money moves.

    A quote is an offer, not a promise: the rate is fixed when the job is assigned to a cluster.

    Attributes:
        offers: Clusters that can run the job, cheapest first.
        misfits: The other approved clusters.
        minutes: The minutes that `cost` is for.
        needed: Credits to lock: for these minutes at the dearest offer, and at least the contract's minimum.
        block: Number of the block that was read.
        at: Time of that block.
    """

    offers: tuple[Offer, ...]
    misfits: tuple[Misfit, ...]
    minutes: int
    needed: Decimal
    block: int
    at: datetime

    def _repr_html_(self) -> str:
        return quote_html(self)


def datetime_of(unix_s: int) -> datetime:
    """A time of the chain as a datetime."""
    return datetime.fromtimestamp(unix_s, UTC)


def moment_of(unix_s: int) -> datetime | None:
    """A time of the chain as a datetime; None for 0, which means that it did not happen."""
    return datetime_of(unix_s) if unix_s else None
