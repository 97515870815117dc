"""A customer's wishes for the choice of a cluster, as programs write them, and as the contract keeps them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from deepgrid.billing.formulas import MAX_LIMIT_MINUTES, affordable_minutes
from deepgrid.chain.client import Chain
from deepgrid.client.values.amounts import Credits, Duration, seconds_of, wei_of
from deepgrid.client.values.quotes import Quote
from deepgrid.errors import InputError
from deepgrid.lifecycle.job import Prefer, Provider, Wishes
from deepgrid.scheduling.fit import unmet
from deepgrid.scheduling.quote import quote as quote_of

if TYPE_CHECKING:
    from deepgrid.customer.order import Order

Preference = Literal["balanced", "price", "start", "speed"]
"""What counts most when a cluster is chosen."""

ANY_PRICE = "any"  # as `max_price`: no ceiling
LEAST_WAIT_S = 600  # the contract's 5 minutes, and time for the request to be mined


@dataclass(frozen=True, slots=True)
class Wanted:
    """Wishes whose prices and times depend on the moment of the request.

    Attributes:
        min_minutes: Minutes that the credits must buy.
        max_rate_wei: Highest price per minute; 0 for any, None for the dearest that the grid quotes.
        give_up_after_s: Seconds from the request on, at least LEAST_WAIT_S; 0 for never.
        prefer: What counts most.
    """

    min_minutes: int = 1
    max_rate_wei: int | None = None
    give_up_after_s: int = 0
    prefer: Prefer = Prefer.BALANCED


NO_WISH = Wanted()


def wanted(
    min_time: Duration | None, max_price: Credits | None, give_up_after: Duration | None, prefer: Preference
) -> Wanted:
    """The wishes in the arguments of a call.

    Raises:
        InputError: An argument is wrong.
    """
    minutes, seconds = seconds_of(min_time), seconds_of(give_up_after)
    if minutes is not None and not 0 < minutes <= MAX_LIMIT_MINUTES * 60:
        raise InputError("The least time of a job is 1 minute to 365 days.", next_step="Write it like 2h or 90m.")
    if seconds is not None and seconds < LEAST_WAIT_S:
        raise InputError("A job is given up after 10 minutes at the earliest.", next_step="Write a time like 1h or 2d.")
    if prefer not in [one.name.lower() for one in Prefer]:
        raise InputError(f"{prefer!r} is no preference.", next_step="Write balanced, price, start or speed.")
    return Wanted(
        min_minutes=1 if minutes is None else max(1, -int(-minutes // 60)),
        max_rate_wei=_max_rate(max_price),
        give_up_after_s=int(seconds or 0),
        prefer=Prefer[prefer.upper()],
    )


def _max_rate(max_price: Credits | None) -> int | None:
    if max_price is None:
        return None
    if max_price == ANY_PRICE:
        return 0
    rate = wei_of(max_price)
    if not rate:
        raise InputError("The highest price is 0.", next_step=f"Write credits per minute, or {ANY_PRICE}.")
    return rate


async def wishes_now(chain: Chain, order: Order, wishes: Wanted, quote: Quote | None = None) -> Wishes:
    """The wishes of an order that is requested now.

    Without a ceiling of the caller, the highest price of `quote` is the ceiling, or that of the grid's clusters now.

    Raises:
        ChainError: The node does not answer.
    """
    rate = wishes.max_rate_wei
    if rate is None and quote is not None:
        rate = max((wei_of(offer.rate) for offer in quote.offers), default=0)
    elif rate is None:
        rate = quoted_rate(order, await chain.providers(), wishes.min_minutes)
    now = max(await chain.now(), int(time.time()))  # a quiet chain's newest block is old
    give_up_at = now + wishes.give_up_after_s if wishes.give_up_after_s else 0
    return Wishes(rate, wishes.min_minutes, give_up_at, wishes.prefer)


def quoted_rate(order: Order, providers: Iterable[Provider], min_minutes: int = 1) -> int:
    """The highest price per minute, in wei, of the clusters that can take an order now; 0 if none can."""
    rates = [
        rate
        for provider, rate in quote_of(order.definition(""), providers).offers
        if not unmet(provider.labels, order.uses, order.affinity)
        and affordable_minutes(order.locked_wei, rate) >= min_minutes
    ]
    return max(rates, default=0)
