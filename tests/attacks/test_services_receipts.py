"""Forged, foreign, repeated and huge receipts, and readers who have no part in the job."""

from __future__ import annotations

import pytest

from deepgrid.errors import AccessDenied, GridError, InputError
from deepgrid.services.receipts import MAX_RECEIPT_BYTES, sign_receipt
from deepgrid.services.signing.request_signing import Domain
from tests.services.receipt_support import at_provider, contents, receipt_of, settled_job
from tests.services.support import ACCOUNTS, DOMAIN, Grid, client_of, session_key


@pytest.mark.attack(
    "reading the receipt of another customer's job, by wallet and by session key", attacker="another customer",
    gain="nothing", defence="only the job's customer, its provider and the operator read a receipt",
)  # fmt: skip
async def test_another_customer_reads_no_receipt(grid: Grid) -> None:
    await grid.provider.send_receipt(1, receipt_of(settled_job(grid.chain)))
    with pytest.raises(AccessDenied, match="has no part in job 1"):
        await grid.rival.receipt(1)
    async with client_of(grid.url, session_key("rival")) as page:
        with pytest.raises(AccessDenied, match="has no part in job 1"):
            await page.receipt(1)


@pytest.mark.attack(
    "a receipt for the job of another provider, signed by oneself or copied", attacker="a provider",
    gain="nothing", defence="sender, signer and the job's provider on chain must be one account",
)  # fmt: skip
async def test_a_provider_signs_no_receipt_of_anothers_job(grid: Grid) -> None:
    job = settled_job(grid.chain)
    forged = receipt_of(at_provider(job, "other_provider"), signer="other_provider")
    for receipt in (forged, receipt_of(job)):
        with pytest.raises(AccessDenied):
            await grid.other_provider.send_receipt(1, receipt)
    settled_job(grid.chain, 2)
    with pytest.raises(AccessDenied, match="of another job"):
        await grid.provider.send_receipt(2, receipt_of(job))


@pytest.mark.attack(
    "a second receipt that says something else", attacker="a provider",
    gain="nothing", defence="the services keep the first receipt of a job and refuse another one",
)  # fmt: skip
async def test_a_second_receipt_replaces_nothing(grid: Grid) -> None:
    job = settled_job(grid.chain)
    first = receipt_of(job)
    await grid.provider.send_receipt(1, first)
    with pytest.raises(InputError, match="the first one is kept"):
        await grid.provider.send_receipt(1, receipt_of(job, nodes="elsewhere"))
    assert await grid.customer.receipt(1) == first


@pytest.mark.attack(
    "huge, deep and endless receipts", attacker="a provider",
    gain="64 KiB read per request", defence="the size is limited before anything is parsed",
)  # fmt: skip
async def test_huge_receipts_are_not_read(grid: Grid) -> None:
    settled_job(grid.chain)
    deep = b'{"receipt":' * (MAX_RECEIPT_BYTES // 12)
    for body in (b"[" * MAX_RECEIPT_BYTES, deep, b" " * (MAX_RECEIPT_BYTES + 1), b"9" * MAX_RECEIPT_BYTES):
        with pytest.raises(GridError):
            await grid.provider.send_receipt(1, body)
    with pytest.raises(GridError):
        await grid.customer.receipt(1)


@pytest.mark.attack(
    "a receipt of the same job on another chain, or of another contract", attacker="a provider",
    gain="nothing", defence="the signature is in the domain of one grid, and the services refuse others",
)  # fmt: skip
@pytest.mark.parametrize(
    "other", [Domain(1, DOMAIN.verifying_contract), Domain(DOMAIN.chain_id, ACCOUNTS["rival"].address)]
)
async def test_receipts_of_another_grid_are_refused(grid: Grid, other: Domain) -> None:
    job = settled_job(grid.chain)
    with pytest.raises(InputError, match="of another grid"):
        await grid.provider.send_receipt(1, sign_receipt(ACCOUNTS["provider"], contents(job, domain=other)))
