"""The customer's session of a flow run, and the check of a workflow file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from prefect import get_run_logger

from blocks import Customer
from blocks.block_loading import load_block
from deepgrid.billing.credits import parse_credits
from deepgrid.client.order import Order, Terms, order_of
from deepgrid.client.session import CustomerSession, customer_session
from deepgrid.client.workflow import read_workflow


@asynccontextmanager
async def open_customer(name: str) -> AsyncIterator[CustomerSession]:
    """Yield a session of the customer block `name`, for one run."""
    block = await load_block(Customer, name)
    async with customer_session(block.settings()) as session:
        yield session


async def validate(session: CustomerSession, file: Path, credits: str, job_name: str | None, terms: Terms) -> Order:
    """Read the workflow file, and check that the grid accepts the job for these credits."""
    order = order_of(await read_workflow(file), parse_credits(credits), job_name, terms)
    for warning in order.warnings:
        get_run_logger().warning("workflow file: %s", warning)
    await session.check(order)
    return order
