"""The side effects of `submit_job`, and the customer's session that they use."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from prefect import get_run_logger

from blocks import Customer
from deepgrid.billing.credits import parse_credits
from deepgrid.client.order import Order, Terms, order_of
from deepgrid.client.session import CustomerSession, customer_session
from deepgrid.client.workflow import read_workflow
from orchestration.retry_policy import side_effect


@asynccontextmanager
async def open_customer(name: str) -> AsyncIterator[CustomerSession]:
    """A session of the customer block `name`, for one run."""
    block = cast(Customer, await Customer.aload(name))
    async with customer_session(block.settings()) as session:
        yield session


@side_effect("validate {file}")
async def validate(session: CustomerSession, file: Path, credits: str, job_name: str | None, terms: Terms) -> Order:
    """Read the workflow file, and check that the grid accepts the job for these credits."""
    order = order_of(await read_workflow(file), parse_credits(credits), job_name, terms)
    for warning in order.warnings:
        get_run_logger().warning("workflow file: %s", warning)
    await session.check(order)
    return order


@side_effect("store definition")
async def store_definition(session: CustomerSession, order: Order) -> str:
    """Upload the definition to the Job Definition service. Returns the hash of the definition."""
    return await session.store(order)


@side_effect("allow credits")
async def allow_credits(session: CustomerSession, order: Order) -> None:
    """Set the allowance to exactly the order's credits, unless it is high enough already."""
    await session.allow(order)


@side_effect("request job")
async def request_job(session: CustomerSession, order: Order, definition_hash: str) -> int:
    """Request the job with its price ceiling, or find the one that an earlier attempt requested. Returns its id."""
    return await session.request(order, definition_hash)
