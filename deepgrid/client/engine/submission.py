"""The steps of a submission: check, store, allow, request."""

from __future__ import annotations

from deepgrid.client.engine.connection import Connection
from deepgrid.client.engine.interruption import noted
from deepgrid.client.quoting import confirm
from deepgrid.client.values import Quote
from deepgrid.customer.order import Order


async def submit(connection: Connection, order: Order, *, approve: bool, quote: Quote | None) -> int:
    """Submit an order; returns the id of its job.

    Raises what `AsyncGrid.submit` raises.
    """
    session = connection.session
    if quote is not None:
        await confirm(connection.chain, order, quote, connection.settings.quote_age_s)
    await connection.patiently(lambda: session.check(order, approve=approve))
    async with connection.uploads:
        definition_hash = await session.store(order)
    async with connection.spending:
        with noted(
            "The job may have been requested; look at `grid.jobs()` or `dps job list` before you submit it again."
        ):
            return await session.request(order, definition_hash, approve=approve)
