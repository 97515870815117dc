"""The clusters of the grid, and their offers for a job, before any money moves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Self

from deepgrid.billing.formulas import rate_wei_per_minute
from deepgrid.chain.client import Chain
from deepgrid.client.display.data_frames import CLUSTER, OFFER, frame_of
from deepgrid.client.display.html import clusters_html
from deepgrid.client.job_values import credits_of, datetime_of
from deepgrid.errors import NotFound
from deepgrid.lifecycle.job import Job, JobDefinition, Provider, Wishes
from deepgrid.lifecycle.states import JobStatus
from deepgrid.plain_text import plain
from deepgrid.scheduling.explain import explain
from deepgrid.scheduling.market import ClusterState, HotJob, Market, Reliability, Row
from deepgrid.scheduling.speed import measured_speeds

if TYPE_CHECKING:
    import pandas as pd

    from deepgrid.client.order import Order

MOST_ESTIMATED = 50  # clusters whose jobs are read to estimate a start, the cheapest first
MOST_JOBS = 2000  # that are read for it

MB_PER_GB = 1000


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster of the grid.

    Attributes:
        name: Its `name` label, or its address if it has no name. Strangers choose names; the address is what identifies
            it.
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
        """Return credits per minute for a job of this shape."""
        shape = JobDefinition(gpus, memory_mb_per_cpu, cpus_per_task, tasks, "")
        return credits_of(rate_wei_per_minute(shape, self.provider.prices))


class Clusters(tuple[Cluster, ...]):
    """The clusters of a grid, in the order of their first registration."""

    def __repr__(self) -> str:
        return f"Clusters({', '.join(cluster.name for cluster in self)})"

    def _repr_html_(self) -> str:
        return clusters_html(self)

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per cluster. It needs pandas, which the extra `bills` installs.

        Returns:
            The table.

        Raises:
            ConfigurationError: pandas is not installed.
        """
        return frame_of(self, CLUSTER)


@dataclass(frozen=True, slots=True)
class ClusterOffer:
    """The offer of one cluster for a job. Strangers choose names; they are shown without control characters.

    Attributes:
        cluster: Name of the cluster.
        address: Address of its provider.
        obstacle: Why it cannot take the job; empty if it can.
        rate: Credits per minute.
        minutes: Whole minutes that the credits buy.
        start: Estimated start, after the jobs that the cluster has claimed; None if it was not estimated.
        wait_s: Seconds until then.
        speed: Measured speed for jobs of this kind, from the cluster's benchmark; None if it has none.
        reliability: Estimated chance, from 0 to 1, that the cluster serves the job.
    """

    cluster: str
    address: str
    obstacle: str
    rate: Decimal
    minutes: int
    start: datetime | None
    wait_s: int | None
    speed: float | None
    reliability: float

    @property
    def fits(self) -> bool:
        """Whether the cluster can take the job, now or later."""
        return not self.obstacle


class Offers(tuple[ClusterOffer, ...]):
    """The offers of all approved clusters: those that can take the job by price, then the others by name.

    Attributes:
        block: Number of the block that was read.
        at: Time of that block.
    """

    block: int
    at: datetime

    def __new__(cls, offers: Iterable[ClusterOffer], block: int, at: datetime) -> Self:
        made = super().__new__(cls, offers)
        made.block, made.at = block, at
        return made

    def __reduce__(self) -> tuple[type[Self], tuple[tuple[ClusterOffer, ...], int, datetime]]:
        return type(self), (tuple(self), self.block, self.at)

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per cluster. It needs pandas, which the extra `bills` installs.

        Returns:
            The table.

        Raises:
            ConfigurationError: pandas is not installed.
        """
        return frame_of(self, OFFER)

    def __repr__(self) -> str:
        return f"Offers({sum(offer.fits for offer in self)} of {len(self)} clusters)"


async def read_offers(chain: Chain, order: Order, provider: str | None = None) -> Offers:
    """Return the offers for an order. A ceiling that the caller did not set hides nothing.

    Raises NotFound if no approved cluster has the name or address `provider`.
    """
    head = await chain.head()
    clusters = [
        (one, Reliability.of_life(record.started, record.refused, record.panicked, record.timed_out))
        for one, record in await chain.providers_and_records()
        if one.approved and (provider is None or provider in (one.name, one.address))
    ]
    if provider is not None and not clusters:
        raise NotFound(f"No approved cluster is named {plain(provider)}.", next_step="Look at `dps provider list`.")
    job = _job(order, order.terms.wishes(0))
    fitting = [row.provider for row in explain(job, _market(clusters, {}, head.timestamp)) if row.fits]
    busy = await _busy(chain, fitting[:MOST_ESTIMATED], head.timestamp)
    rows = explain(job, _market(clusters, busy, head.timestamp))
    offers = [_offer(row, head.timestamp, estimated=row.provider in busy) for row in rows]
    return Offers(offers, head.number, datetime_of(head.timestamp))


def _market(clusters: Sequence[tuple[Provider, Reliability]], busy: Mapping[str, Sequence[HotJob]], now: int) -> Market:
    return Market(
        [ClusterState(one, busy.get(one.address, ()), record, measured_speeds(one)) for one, record in clusters], now
    )


async def _busy(chain: Chain, addresses: Sequence[str], now: int) -> dict[str, list[HotJob]]:
    """Return the claimed jobs of these providers. Providers beyond MOST_JOBS are missing."""
    ids: dict[str, list[int]] = {}
    claimed = await asyncio.gather(*(chain.claimed_jobs(address) for address in addresses))
    for address, of_one in zip(addresses, claimed, strict=True):
        if sum(map(len, ids.values())) + len(of_one) <= MOST_JOBS:
            ids[address] = of_one
    wanted = [job_id for of_one in ids.values() for job_id in of_one]
    jobs = {job.id: job for job in await chain.jobs(wanted)} if wanted else {}
    return {
        address: [HotJob.of(jobs[job_id], now) for job_id in of_one if jobs[job_id].status.hot]
        for address, of_one in ids.items()
    }


def _offer(row: Row, now: int, *, estimated: bool) -> ClusterOffer:
    known = estimated and row.fits and row.estimated_start
    return ClusterOffer(
        cluster=plain(row.cluster), address=row.provider, obstacle=plain(row.obstacle), rate=credits_of(row.rate_wei),
        minutes=row.minutes, start=datetime_of(row.estimated_start) if known else None,
        wait_s=max(0, row.estimated_start - now) if known else None, speed=row.speed or None,
        reliability=row.reliability,
    )  # fmt: skip


def _job(order: Order, wishes: Wishes) -> Job:
    """Return the order as a job that is not on chain yet: all its times are 0, and no cluster has it."""
    return Job(
        id=0, status=JobStatus.PENDING, customer="", provider=None, definition=order.definition(""), name=order.name,
        locked_wei=order.locked_wei, final_cost_wei=0, submitted_at=0, assigned_at=0, claimed_at=0, started_at=0,
        ended_at=0, cancel_requested_at=0, has_cancel_request=False, rate_wei_per_minute=0, cut_percent=0,
        granted_minutes=0, last_refuser=None, delegate_spending=False, last_error="", exit_status=0, wishes=wishes,
    )  # fmt: skip
