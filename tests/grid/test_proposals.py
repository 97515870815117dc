"""A change of measured labels is approved automatically. A change of prices waits for the operator."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from deepgrid.chain.client import Chain
from deepgrid.lifecycle.job import Label, Provider
from tests.grid.customer import PATIENCE_S, Customer
from tests.grid.runs import run_now, unscheduled
from tests.grid.writers import writer_of

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


async def test_measurements_are_approved_and_prices_wait(customer: Customer) -> None:
    grid = customer.grid
    async with writer_of(grid, "alpha") as alpha:
        standing = await alpha.chain.provider(alpha.address)
        dearer = replace(standing.prices, cpu_wei_per_minute=2 * standing.prices.cpu_wei_per_minute)
        others = tuple(label for label in standing.labels if label.key != "compute.gflops")
        faster = (*others, Label("compute.gflops", "123456.00"))
        try:
            await alpha.register(standing.hardware, standing.prices, faster)
            await _until(alpha.chain, alpha.address, lambda one: one.labels == faster)

            async with unscheduled(grid, "approve_labels/grid"):
                await alpha.register(standing.hardware, dearer, faster)
                run = await run_now(grid, "approve_labels/grid", operator="grid")
            assert run["state"]["message"] == "alpha waits for the operator: its prices would change."
            waiting = await alpha.chain.provider(alpha.address)
            assert (waiting.prices, waiting.waiting_for_approval) == (standing.prices, True)
        finally:
            await alpha.register(standing.hardware, standing.prices, standing.labels)
            await run_now(grid, "approve_labels/grid", operator="grid")
            await _until(alpha.chain, alpha.address, lambda one: one.labels == standing.labels)


async def _until(chain: Chain, address: str, reached: Callable[[Provider], bool]) -> None:
    """Wait until no proposal waits for approval and `wanted` is true for the terms in force."""
    deadline = time.monotonic() + PATIENCE_S
    while (one := await chain.provider(address)).waiting_for_approval or not reached(one):
        assert time.monotonic() < deadline, f"still {one}"
        await asyncio.sleep(0.5)
