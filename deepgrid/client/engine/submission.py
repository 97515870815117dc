"""The steps of a submission: check, store, allow, request."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from deepgrid.client.engine.connection import Connection
from deepgrid.client.quoting import confirm
from deepgrid.client.values import Quote

if TYPE_CHECKING:
    from deepgrid.customer.order import Order

INTERRUPTED = "interrupted while the job was requested; `dps job list` shows whether it exists."


async def submit(connection: Connection, order: Order, *, approve: bool, quote: Quote | None) -> int:
    """Submit an order; returns the id of its job.

    Only the check is retried. An interruption of the request carries a note, because the job may exist then.
    Raises what `AsyncGrid.submit` raises.
    """
    session = connection.session
    if quote is not None:
        await confirm(connection.chain, order, quote, connection.settings.quote_age_s)
    await connection.patiently(lambda: session.check(order, approve=approve))
    async with connection.uploads:
        definition_hash = await session.store(order)
    async with connection.spending:
        try:
            return await session.request(order, definition_hash, approve=approve)
        except asyncio.CancelledError as stop:
            stop.add_note(INTERRUPTED)
            raise
