"""Describes the price of a job in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from deepgrid.billing.credits import format_credits
from deepgrid.billing.formulas import MAX_LIMIT_MINUTES, affordable_minutes
from deepgrid.cli.grid import as_anyone
from deepgrid.client.display.story import cluster_name
from deepgrid.client.display.text import plural, printable
from deepgrid.customer.order import Order
from deepgrid.errors import ChainError, ConfigurationError
from deepgrid.scheduling.quote import Quote, quote
from deepgrid.workflow import Definition


async def quoted(job: Definition, book: Path | None, credits_wei: int | None) -> list[str]:
    """The prices of the grid's clusters, and how long `credits_wei` last; or why no prices are known.

    Raises ConfigurationError if `book` is given and wrong.
    """
    definition = Order(job, name="", locked_wei=0).definition("")
    try:
        async with as_anyone(book) as chain:
            providers = await chain.providers()
    except ConfigurationError as error:
        if book is not None:
            raise
        return [f"No prices are known here: {error.message} --book FILE shows the price of the job."]
    except ChainError as error:
        return [f"No prices are known now: {error.message}"]
    return [printable(line) for line in _sentences(quote(definition, providers), credits_wei)]


def _sentences(found: Quote, credits_wei: int | None) -> Iterator[str]:
    if not found.offers:
        yield "No cluster of the grid can run it." if found.misfits else "No cluster has joined the grid yet."
        yield from (f"{cluster_name(one)}: {why}." for one, why in found.misfits)
        return
    (cheapest, least), (dearest, most) = found.offers[0], found.offers[-1]
    count, low, high = plural(len(found.offers), "cluster"), cluster_name(cheapest), cluster_name(dearest)
    minute, hour = format_credits(least), format_credits(60 * least)
    if least == most:
        where = f" ({low})" if len(found.offers) == 1 else ""
        yield f"{count} can run it{where}: {minute} credits per minute, {hour} per hour."
    else:
        yield f"{count} can run it: from {minute} credits per minute ({low}) to {format_credits(most)} ({high})."
        yield f"An hour costs {hour} to {format_credits(60 * most)} credits."
    if credits_wei is not None:
        yield f"{format_credits(credits_wei)} credits last {_duration(credits_wei, least, most)}."


def _duration(credits_wei: int, least: int, most: int) -> str:
    longest, shortest = affordable_minutes(credits_wei, least), affordable_minutes(credits_wei, most)
    bound = ", the most that a job can have" if longest == MAX_LIMIT_MINUTES else ""
    if longest == shortest:
        return plural(longest, "minute") + bound
    return f"{plural(shortest, 'minute')} to {plural(longest, 'minute')}{bound}"
