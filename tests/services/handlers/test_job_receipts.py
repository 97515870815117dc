"""Receipts at the services: their provider stores them, and the parties of the job read them."""

from __future__ import annotations

import pytest

from deepgrid.errors import AccessDenied, InputError, NotFound, ServiceError
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.client import ServicesClient
from deepgrid.services.storage.receipt_table import ReceiptRecord
from tests.services.receipt_support import receipt_of, settled_job
from tests.services.support import Grid, client_of, session_key


async def test_customer_provider_and_operator_read_the_receipt(grid: Grid) -> None:
    receipt = receipt_of(settled_job(grid.chain))
    await grid.provider.send_receipt(1, receipt)
    for reader in (grid.customer, grid.provider, grid.operator):
        assert await reader.receipt(1) == receipt
    async with client_of(grid.url, session_key(rights="read")) as page:
        assert await page.receipt(1) == receipt


async def test_it_is_sealed_at_rest(grid: Grid) -> None:
    await grid.provider.send_receipt(1, receipt_of(settled_job(grid.chain)))
    async with grid.context.database.read() as session:
        stored = await session.get_one(ReceiptRecord, 1)
    assert b"customer" not in stored.sealed


async def test_the_first_receipt_stays(grid: Grid) -> None:
    job = settled_job(grid.chain)
    first = receipt_of(job)
    await grid.provider.send_receipt(1, first)
    await grid.provider.send_receipt(1, first)
    with pytest.raises(InputError, match="another receipt of job 1 already; the first one is kept"):
        await grid.provider.send_receipt(1, receipt_of(job, nodes="n9"))
    assert await grid.customer.receipt(1) == first


async def test_a_receipt_must_say_what_the_chain_says(grid: Grid) -> None:
    receipt = receipt_of(settled_job(grid.chain))
    grid.chain.put(1, "cd" * 32, JobStatus.FINISHED, locked_wei=30 * 10**18)
    with pytest.raises(InputError, match="the chain says otherwise than the receipt: request, times, rate"):
        await grid.provider.send_receipt(1, receipt)


async def test_a_job_that_is_not_over_has_none(grid: Grid) -> None:
    receipt = receipt_of(settled_job(grid.chain))
    grid.chain.put(1, "ab" * 32, JobStatus.RUNNING)
    with pytest.raises(ServiceError, match="does not show the end of job 1 yet") as refused:
        await grid.provider.send_receipt(1, receipt)
    assert refused.value.transient
    with pytest.raises(NotFound, match="it is not over"):
        await grid.customer.receipt(1)


async def _refused(client: ServicesClient, receipt: bytes, job_id: int = 1) -> None:
    with pytest.raises((AccessDenied, InputError)):
        await client.send_receipt(job_id, receipt)


async def test_nothing_else_is_stored(grid: Grid) -> None:
    receipt = receipt_of(settled_job(grid.chain))
    for other in (grid.customer, grid.operator, grid.other_provider):
        await _refused(other, receipt)
    await _refused(grid.provider, b"{}")
    await _refused(grid.provider, receipt + b" ")
    with pytest.raises(NotFound, match="its provider signs it within minutes"):
        await grid.customer.receipt(1)
