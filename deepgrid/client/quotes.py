"""Quotes: what each cluster of the grid would charge for a job, and which clusters cannot run it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from deepgrid.billing.credits import format_credits
from deepgrid.billing.formulas import MAX_LIMIT_MINUTES, affordable_minutes
from deepgrid.chain.client import Chain
from deepgrid.client.display.html import quote_html
from deepgrid.client.display.text import plural
from deepgrid.client.errors import QuoteExpired
from deepgrid.client.job_values import credits_of
from deepgrid.errors import InputError
from deepgrid.lifecycle.job import Provider
from deepgrid.scheduling.explain import quote
from deepgrid.scheduling.fit import mismatch

if TYPE_CHECKING:
    from deepgrid.client.order import Order


@dataclass(frozen=True, slots=True)
class Offer:
    """The price of one cluster for a job.

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
        needed: Credits to lock: for these minutes at the most expensive offer, and at least the contract's minimum.
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


async def quote_for(chain: Chain, order: Order, minutes: int) -> Quote:
    """Return the quote for an order that runs `minutes`, from 1 to one year. Raises InputError or ChainError."""
    if not 1 <= minutes <= MAX_LIMIT_MINUTES:
        raise InputError(f"A job cannot run for {minutes} minutes.", next_step=f"Give 1 to {MAX_LIMIT_MINUTES}.")
    head = await chain.head()
    providers, constants = await chain.providers(), await chain.constants()
    found = quote(order.definition(""), providers)
    misfits = [Misfit(one.name, one.address, why) for one, why in found.misfits]
    offers = []
    for one, rate in found.offers:
        if missing := mismatch(one.labels, order.uses, order.affinity, order.job.resources.gpus):
            misfits.append(Misfit(one.name, one.address, missing))
        else:
            offers.append((one, rate))
    dearest = max((rate for _, rate in offers), default=0)
    return Quote(
        offers=tuple(_offer(one, rate, minutes) for one, rate in offers),
        misfits=tuple(misfits),
        minutes=minutes,
        needed=credits_of(max(constants.minimum_wei, minutes * dearest)),
        block=head.number,
        at=datetime.fromtimestamp(head.timestamp, UTC),
    )


def _offer(provider: Provider, rate_wei: int, minutes: int) -> Offer:
    return Offer(provider.name, provider.address, credits_of(rate_wei), credits_of(minutes * rate_wei))


async def check_quote(chain: Chain, order: Order, old: Quote, age_s: float) -> None:
    """Raise QuoteExpired unless a quote still holds: it is not older than `age_s`, and no offer became dearer."""
    now = await quote_for(chain, order, old.minutes)
    age = (now.at - old.at).total_seconds()
    if age > age_s:
        raise QuoteExpired(
            f"The quote is {age:.0f} s old; quotes hold for {age_s:.0f} s.", next_step="Ask for a new one."
        )
    before = {offer.address: offer for offer in old.offers}
    for offer in now.offers:
        then = before.get(offer.address)
        if then is not None and offer.rate > then.rate:
            raise QuoteExpired(
                f"The price at {offer.cluster} rose from {then.rate:f} to {offer.rate:f} credits per minute.",
                next_step="Ask for a new quote, and submit again if you agree.",
            )


def check_reach(order: Order, providers: Iterable[Provider]) -> None:
    """Raise InputError if the credits buy too few minutes at each cluster that could take the order.

    Clusters above the ceiling do not count: the order may wait until one of them is cheaper.
    """
    ceiling, least = order.terms.max_rate_wei, order.terms.min_minutes
    rates = [rate for _, rate in order.fitting(providers) if not (ceiling and rate > ceiling)]
    if not rates or (minutes := affordable_minutes(order.locked_wei, min(rates))) >= least:
        return
    raise InputError(
        f"The credits buy {plural(minutes, 'minute')} at the cheapest cluster, but the job must get {least:,}.",
        next_step=f"Lock at least {format_credits(least * min(rates))} credits, or give a shorter --min-time.",
    )
