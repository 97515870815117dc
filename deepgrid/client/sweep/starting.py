"""Starts a sweep: checks its arguments and all definitions, then begins to request jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from deepgrid.client.engine.connection import Connection
from deepgrid.client.idempotency import random_key
from deepgrid.client.sweep.driver import Sweep, SweepLimits
from deepgrid.client.sweep.plan import OrderTerms, Plan
from deepgrid.client.workflow import Workflow
from deepgrid.errors import InputError

MAP = "map"


async def start_sweep(
    connection: Connection, workflow: Workflow, parameters: Iterable[Mapping[str, object]], terms: OrderTerms,
    limits: SweepLimits, *, pack: int, key: str | None,
) -> Sweep:  # fmt: skip
    """Start a sweep. Raises what `AsyncGrid.map` raises."""
    for name, value in (("at_once", limits.at_once), ("pack", pack)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"{name} is {value!r}; it must be a whole number of at least 1.")
    if limits.most_wei is not None and limits.most_wei < terms.locked_wei:
        raise InputError("The budget `most` is smaller than the credits of one job.")
    if limits.most_wei is not None and terms.delegate_spending:
        raise InputError(
            "The budget `most` does not hold with delegate_spending, because top-ups lock further credits.",
            next_step="Leave one of them out.",
        )
    named = connection.idempotency_key(MAP, random_key() if key is None else key)
    plan = Plan(workflow, terms, pack, named, named=key is not None)
    entries = await asyncio.to_thread(plan.entries, parameters)
    constants = await connection.patiently(connection.chain.constants)
    connection.session.purse.check_minimum(terms.locked_wei, constants.minimum_wei)
    await connection.patiently(lambda: plan.quote(connection.chain))
    sweep = Sweep(connection, plan, entries, limits)
    sweep.start()
    return sweep
