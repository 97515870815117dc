"""Offers: what each cluster of the grid would be for a job, before any money moves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, overload

from deepgrid.chain.client import Chain
from deepgrid.client.values.amounts import credits_of
from deepgrid.client.values.returned import datetime_of
from deepgrid.client.values.wishes import Wanted
from deepgrid.errors import NotFound
from deepgrid.lifecycle.job import Job, Provider, Wishes
from deepgrid.lifecycle.states import JobStatus
from deepgrid.plain_text import plain
from deepgrid.scheduling.explain import explain
from deepgrid.scheduling.hot_jobs import hot_job, reliability_of
from deepgrid.scheduling.market import ClusterState, HotJob, Market, Reliability, Row
from deepgrid.scheduling.speed import measured_speeds

if TYPE_CHECKING:
    from deepgrid.customer.order import Order

MOST_ESTIMATED = 50  # clusters whose jobs are read to estimate a start, the cheapest first
MOST_JOBS = 2000  # that are read for it

Clusters = Sequence[tuple[Provider, Reliability]]


@dataclass(frozen=True, slots=True)
class ClusterOffer:
    """What one cluster would be for a job. Strangers choose names; they are shown without control characters.

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


class Offers(Sequence[ClusterOffer]):
    """The offers of all approved clusters: those that can take the job by price, then the others by name.

    Attributes:
        block: Number of the block that was read.
        at: Time of that block.
    """

    def __init__(self, offers: Sequence[ClusterOffer], block: int, at: datetime) -> None:
        self._offers = tuple(offers)
        self.block = block
        self.at = at

    @overload
    def __getitem__(self, index: int) -> ClusterOffer: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[ClusterOffer, ...]: ...

    def __getitem__(self, index: int | slice) -> ClusterOffer | tuple[ClusterOffer, ...]:
        return self._offers[index]

    def __len__(self) -> int:
        return len(self._offers)

    def __iter__(self) -> Iterator[ClusterOffer]:
        return iter(self._offers)

    def __repr__(self) -> str:
        return f"Offers({sum(offer.fits for offer in self)} of {len(self)} clusters)"


async def read_offers(chain: Chain, order: Order, wishes: Wanted, provider: str | None = None) -> Offers:
    """The offers for an order. A ceiling that the caller did not name hides nothing.

    Raises:
        NotFound: No approved cluster has the name or address `provider`.
        ChainError: The node does not answer.
    """
    head = await chain.head()
    clusters = [
        (one, reliability_of(record.started, record.refused, record.panicked, record.timed_out))
        for one, record in await chain.providers_and_records()
        if one.approved and (provider is None or provider in (one.name, one.address))
    ]
    if provider is not None and not clusters:
        raise NotFound(f"No approved cluster is named {plain(provider)}.", next_step="Look at `dps provider list`.")
    job = _job(order, Wishes(wishes.max_rate_wei or 0, wishes.min_minutes, 0, wishes.prefer))
    fitting = [row.provider for row in explain(job, _market(clusters, {}, head.timestamp)) if row.fits]
    busy = await _busy(chain, fitting[:MOST_ESTIMATED], head.timestamp)
    rows = explain(job, _market(clusters, busy, head.timestamp))
    offers = [_offer(row, head.timestamp, estimated=row.provider in busy) for row in rows]
    return Offers(offers, head.number, datetime_of(head.timestamp))


def _market(clusters: Clusters, busy: Mapping[str, Sequence[HotJob]], now: int) -> Market:
    return Market(
        [ClusterState(one, busy.get(one.address, ()), record, measured_speeds(one)) for one, record in clusters], now
    )


async def _busy(chain: Chain, addresses: Sequence[str], now: int) -> dict[str, list[HotJob]]:
    """The claimed jobs of these providers. Providers beyond MOST_JOBS are missing."""
    ids: dict[str, list[int]] = {}
    claimed = await asyncio.gather(*(chain.claimed_jobs(address) for address in addresses))
    for address, of_one in zip(addresses, claimed, strict=True):
        if sum(map(len, ids.values())) + len(of_one) <= MOST_JOBS:
            ids[address] = of_one
    wanted = [job_id for of_one in ids.values() for job_id in of_one]
    jobs = {job.id: job for job in await chain.jobs(wanted)} if wanted else {}
    return {
        address: [hot_job(jobs[job_id], now) for job_id in of_one if jobs[job_id].status.hot]
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
    """The order as a job that is not on chain yet."""
    return Job(
        id=0, status=JobStatus.PENDING, customer="", provider=None, definition=order.definition(""), name=order.name,
        locked_wei=order.locked_wei, final_cost_wei=0, submitted_at=0, assigned_at=0, claimed_at=0, started_at=0,
        ended_at=0, cancel_requested_at=0, has_cancel_request=False, rate_wei_per_minute=0, cut_percent=0,
        granted_minutes=0, last_refuser=None, delegate_spending=False, last_error="", exit_status=0, wishes=wishes,
    )  # fmt: skip
