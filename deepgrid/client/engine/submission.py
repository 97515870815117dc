"""The steps of a submission: look for an earlier one with the same key, check, store, allow, request."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from deepgrid.client.engine.connection import Connection
from deepgrid.client.engine.earlier_job import check_earlier
from deepgrid.client.engine.idempotency import IdempotencyKey, Journal, Use, key_lock
from deepgrid.client.engine.result_cache import cache_key, check_cacheable, finished_equal
from deepgrid.client.errors import IdempotencyConflict, note_interruption
from deepgrid.client.job_values import wei_of
from deepgrid.client.quotes import Quote, check_quote
from deepgrid.client.settings import log_outage, patiently

if TYPE_CHECKING:
    from deepgrid.client.order import Order
    from deepgrid.services.kept_messages import Mark

SUBMIT = "submit"


async def submit(
    connection: Connection,
    order: Order,
    *,
    approve: bool = True,
    quote: Quote | None = None,
    key: str | None = None,
    mark: Mark | None = None,
) -> int:
    """Submit an order; returns the id of its job.

    Only checks are retried. An interruption of the request carries a note, because the job may exist then.
    Raises what `AsyncGrid.submit` raises.
    """
    if key is None:
        return await _submit(connection, order, approve=approve, quote=quote, salt=None, mark=mark)
    from deepgrid.workflow import canonical, hash_definition  # here: the language takes 0.3 s to load

    named = connection.idempotency_key(SUBMIT, key)
    content, salt = canonical(order.job), named.salt()
    definition_hash = hash_definition(salt, content)
    async with key_lock(named.folder, named.id, connection.settings.key_wait_s):
        await connection.refresh_requested()
        existing = await connection.find_requested(definition_hash)
        if existing is not None:
            connection.outputs[existing.id] = order.job.output
            return existing.id
        record_use(connection, named, Use(named.fingerprint(content), definition_hash))
        return await _submit(connection, order, approve=approve, quote=quote, salt=salt, mark=mark)


async def place(
    connection: Connection,
    order: Order,
    *,
    approve: bool,
    quote: Quote | None,
    key: str | None,
    mark: Mark | None,
    cache: bool,
) -> tuple[int, bool]:
    """Submit an order, with `cache` unless an equal job finished. Returns the job's id, and whether it is that one.

    Raises what `submit` raises and, with `cache`, InputError for an order whose result may change.
    """
    if not cache:
        return await submit(connection, order, approve=approve, quote=quote, key=key, mark=mark), False
    from deepgrid.workflow import canonical

    content, named = canonical(order.job), cache_key(connection)
    check_cacheable(content)
    equal = named.fingerprint(content)  # so that different jobs do not wait for each other
    async with key_lock(named.folder, equal, connection.settings.key_wait_s):
        known, salt = await finished_equal(connection, order, content)
        if known is None:
            return await _submit(connection, order, approve=approve, quote=quote, salt=salt, mark=mark), False
    connection.outputs[known] = order.job.output
    return known, True


def record_use(connection: Connection, key: IdempotencyKey, use: Use) -> None:
    """Record what the key is used for. Raises IdempotencyConflict if it has a job with another definition."""
    journal = Journal(key.folder)
    earlier = journal.find(key.id)
    if earlier == use:
        return
    job_id = None if earlier is None else connection.requested.find(earlier.first_hash)
    if earlier is None or job_id is None:  # the earlier use requested nothing
        journal.record(key.id, use)
    elif earlier.fingerprint != use.fingerprint:
        raise IdempotencyConflict(
            f"The idempotency key was used with another workflow before, for job {job_id}.",
            next_step="Use another key for this workflow.",
        )


async def _submit(
    connection: Connection, order: Order, *, approve: bool, quote: Quote | None, salt: bytes | None, mark: Mark | None
) -> int:
    session = connection.session
    await check_earlier(connection, [order.terms])
    if quote is not None:
        await check_quote(connection.chain, order, quote, connection.settings.quote_age_s)
        if order.terms.max_rate_wei is None:
            order = order.with_ceiling(max((wei_of(offer.rate) for offer in quote.offers), default=0))
    await connection.patiently(lambda: session.check(order, approve=approve))
    ceiled = await connection.patiently(lambda: session.with_ceiling(order))
    async with connection.uploads:
        definition_hash = await session.store(order, salt)
    if mark is not None:
        await note(connection, {definition_hash: mark})
    async with connection.spending:
        with note_interruption(
            "The job may have been requested; look at `grid.jobs()` or `dps job list` before you submit it again."
        ):
            job_id = await session.request(ceiled, definition_hash, approve=approve)
    connection.outputs[job_id] = order.job.output
    await asyncio.to_thread(_keep_here, connection, definition_hash, order)
    return job_id


def _keep_here(connection: Connection, definition_hash: str, order: Order) -> None:
    from deepgrid.client.engine.own_copies import OwnCopies
    from deepgrid.workflow import canonical

    OwnCopies(connection.session.sender.wallet).keep(definition_hash, canonical(order.job))


async def note(connection: Connection, marks: Mapping[str, Mark]) -> None:
    """Note tags and places in sweeps about stored definitions. Raises ServiceError, even if the services cannot."""
    from deepgrid.services.kept_messages import JobMark

    rows = [
        JobMark(definition_hash=one, tags=mark.tags, note=mark.note, sweep=mark.sweep) for one, mark in marks.items()
    ]
    settings = connection.settings
    patience_s = max(settings.patience_s, settings.note_patience_s)
    await patiently(
        lambda: connection.session.services.write_marks(rows), patience_s, settings.longest_pause_s, log_outage
    )
