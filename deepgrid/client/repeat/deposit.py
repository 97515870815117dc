"""The deposit of a job by time: the price for this time at the most expensive cluster that can take it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from deepgrid.billing.formulas import MAX_LIMIT_MINUTES
from deepgrid.client.job_values import Credits, Duration, credits_of, seconds_of, wei_of
from deepgrid.errors import InputError

if TYPE_CHECKING:
    from deepgrid.client.engine.connection import Connection
    from deepgrid.client.order import Order
    from deepgrid.client.quotes import Offer

MINUTES_OF = {"day": 24 * 60, "hour": 60, "minute": 1}


def minutes_of(time: Duration) -> int:
    """Return a time in minutes, rounded up. Raises InputError."""
    minutes = math.ceil((seconds_of(time) or 0) / 60)
    if not 0 < minutes <= MAX_LIMIT_MINUTES:
        raise InputError("The time of a job is 1 minute to 365 days.", next_step="Write it like 4h or 90m.")
    return minutes


def require_reach(minutes: int, least: int) -> None:
    """Raise InputError if a deposit for a time is less than what the job must get: no cluster would ever get it."""
    if least > minutes:
        raise InputError(
            f"The time is {time_words(minutes)}, but the job must get at least {time_words(least)}.",
            next_step="Give a longer --time, or a shorter --min-time.",
        )


def require_one(credits: Credits | None, time: Duration | None) -> None:
    """Raise InputError unless exactly one of the two is given."""
    if (credits is None) == (time is None):
        raise InputError(
            "The number of credits to lock is missing, or given twice.",
            next_step="Give credits or a time such as 4h, not both.",
        )


async def with_deposit(connection: Connection, order: Order, credits: Credits | None, time: Duration | None) -> Order:
    """Return the order with its deposit: these credits, or those for this time. Raises InputError or ChainError."""
    require_one(credits, time)
    if credits is not None:
        return replace(order, locked_wei=wei_of(credits))
    assert time is not None
    return (await order_for(connection, order, minutes_of(time)))[0]


async def order_for(connection: Connection, order: Order, minutes: int) -> tuple[Order, Deposit]:
    """Return the order with the deposit for these minutes, at least, and what it follows from.

    Clusters above the highest price of the order do not count. Raises InputError if no cluster can take it now,
    and if the order must get more minutes.
    """
    from deepgrid.client.quotes import quote_for

    require_reach(minutes, order.terms.min_minutes)
    quote = await quote_for(connection.reads, order, minutes)
    ceiling = order.terms.max_rate_wei
    offers = tuple(offer for offer in quote.offers if not ceiling or wei_of(offer.rate) <= ceiling)
    if not offers:
        raise InputError(
            "No cluster can take the job now, so its price is not known.",
            next_step="Look at `dps offers`, or give credits instead of a time.",
        )
    minimum_wei = (await connection.reads.constants()).minimum_wei
    terms = replace(order.terms, min_minutes=minutes)
    locked_wei = max(minimum_wei, minutes * max(wei_of(offer.rate) for offer in offers))
    return replace(order, locked_wei=locked_wei, terms=terms), Deposit(credits_of(locked_wei), minutes, offers)


@dataclass(frozen=True)
class Deposit:
    """What a job would lock to run for a time, and its costs. `str` gives one sentence per fact.

    Attributes:
        credits: Credits to lock: for the most expensive cluster that can take the job, and at least the contract's
            minimum.
        minutes: The time.
        offers: The clusters that can take the job, cheapest first, with their costs for this time.
    """

    credits: Decimal
    minutes: int
    offers: tuple[Offer, ...]

    def __str__(self) -> str:
        costs = [f"{one.cost:f} {'' if at else 'credits '}at {one.cluster}" for at, one in enumerate(self.offers)]
        verb = "costs" if self.minutes in MINUTES_OF.values() else "cost"
        time = time_words(self.minutes)
        return f"{time} {verb} {', '.join(costs)}. Partial minutes are rounded up, and unused credits are returned."


def time_words(minutes: int) -> str:
    """Return minutes in the largest unit that fits: `4 hours`."""
    name, size = next((name, size) for name, size in MINUTES_OF.items() if minutes % size == 0)
    count = minutes // size
    return f"{count:,} {name}{'' if count == 1 else 's'}"
