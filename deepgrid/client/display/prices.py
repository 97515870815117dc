"""Describes the price of a job in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from deepgrid.billing.credits import format_credits
from deepgrid.billing.formulas import MAX_LIMIT_MINUTES, affordable_minutes
from deepgrid.client.display.text import plural
from deepgrid.client.values.amounts import wei_of
from deepgrid.client.values.returned import Quote


def price_sentences(quote: Quote, credits_wei: int | None = None) -> Iterator[str]:
    """What a job costs at the clusters of a grid, and how long `credits_wei` last; or why none can run it."""
    if not quote.offers:
        yield "No cluster of the grid can run it." if quote.misfits else "No cluster has joined the grid yet."
        yield from (f"{misfit.cluster}: {misfit.why}." for misfit in quote.misfits)
        return
    cheapest, dearest = quote.offers[0], quote.offers[-1]
    least, most = wei_of(cheapest.rate), wei_of(dearest.rate)
    count, minute, hour = plural(len(quote.offers), "cluster"), format_credits(least), format_credits(60 * least)
    if least == most:
        where = f" ({cheapest.cluster})" if len(quote.offers) == 1 else ""
        yield f"{count} can run it{where}: {minute} credits per minute, {hour} per hour."
    else:
        dear = f"{format_credits(most)} ({dearest.cluster})"
        yield f"{count} can run it: from {minute} credits per minute ({cheapest.cluster}) to {dear}."
        yield f"An hour costs {hour} to {format_credits(60 * most)} credits."
    if credits_wei is not None:
        yield f"{format_credits(credits_wei)} credits last {_duration(credits_wei, least, most)}."


def _duration(credits_wei: int, least: int, most: int) -> str:
    longest, shortest = affordable_minutes(credits_wei, least), affordable_minutes(credits_wei, most)
    bound = ", the most that a job can have" if longest == MAX_LIMIT_MINUTES else ""
    if longest == shortest:
        return plural(longest, "minute") + bound
    return f"{plural(shortest, 'minute')} to {plural(longest, 'minute')}{bound}"
