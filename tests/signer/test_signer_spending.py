"""The local signer sends only known calls of this grid, and locks at most its limit of credits per hour."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deepgrid.client.spending.budgets import Budget, write_budget
from tests.chain.grid import CREDIT, Grid
from tests.signer.signer_support import STRANGER, Page, transactions
from tests.signer.signer_support import closed_page as closed_page
from tests.signer.signer_support import grid as grid
from tests.signer.signer_support import page as page


async def test_a_job_by_permit_is_counted_once(page: Page) -> None:
    for nonce in range(2):  # 500 credits each: 1,000 in all, which is the limit
        deadline = await page.chain.now() + 600
        signature = (await page.permit(500, nonce=nonce, deadline=deadline))["result"]
        sent = await page.request_with_permit(500, signature, deadline)
        assert sent["result"].startswith("0x"), sent
    assert await page.chain.balance(page.wallet.address) == 9_000 * CREDIT
    assert "limit of 1000 credits per hour 0 are left" in (await page.permit(100, nonce=2))["error"]["message"]


async def test_a_job_by_approval_is_counted_once(page: Page) -> None:
    for _ in range(2):
        assert "result" in await page.send("Credit", "approve", page.chain.book.meta_scheduler, 500 * CREDIT)
        assert "result" in await page.request(500)
    assert "error" in await page.send("Credit", "approve", page.chain.book.meta_scheduler, 1)
    assert "result" in await page.send("Credit", "approve", page.chain.book.meta_scheduler, 0)


async def test_a_permit_that_is_signed_again_is_counted_once(page: Page) -> None:
    for _ in range(5):
        assert "result" in await page.permit(800)
    assert "result" in await page.permit(1000)
    assert "error" in await page.permit(1001)
    assert "error" in await page.permit(1, nonce=1)


@pytest.mark.parametrize("way", ["permit", "approve", "transfer", "request", "delegate", "set delegate"])
async def test_nothing_goes_above_the_limit(page: Page, grid: Grid, way: str) -> None:
    scheduler = page.chain.book.meta_scheduler
    owner = Sender(page.chain, Wallet.load(grid.keys / Path(str(page.wallet.key_file)).name))
    await Writer(page.chain, owner).approve(3000 * CREDIT)  # by `dps`, with the same key
    before = transactions(page, grid)
    answer = await {
        "permit": lambda: page.permit(1001),
        "approve": lambda: page.send("Credit", "approve", scheduler, 4001 * CREDIT),
        "transfer": lambda: page.send("Credit", "transfer", STRANGER, 1001 * CREDIT),
        "request": lambda: page.request(1001),
        "delegate": lambda: page.request(100, delegate=True),
        "set delegate": lambda: page.send("MetaScheduler", "setDelegateSpendingAuthority", bytes(32), True),
    }[way]()
    assert "Start `dps web` with a higher --limit" in answer["error"]["message"]
    assert transactions(page, grid) == before
    await owner.close()


async def test_a_refused_request_gives_its_credits_back(page: Page) -> None:
    for _ in range(3):
        answer = await page.request(900)  # without any allowance
        assert answer["error"]["code"] == 3
        assert answer["error"]["data"]["name"] == "ERC20InsufficientAllowance"
    assert "result" in await page.send("Credit", "transfer", STRANGER, 1000 * CREDIT)
    assert "error" in await page.send("Credit", "transfer", STRANGER, 1)


async def test_a_job_is_cancelled_at_any_limit(page: Page) -> None:
    assert "result" in await page.send("Credit", "approve", page.chain.book.meta_scheduler, 1000 * CREDIT)
    assert "result" in await page.request(1000)
    job = (await page.chain.jobs_by_customer(page.wallet.address))[0]
    assert "result" in await page.cancel(job)
    assert await page.chain.balance(page.wallet.address) == 10_000 * CREDIT


@pytest.mark.parametrize(
    "fields",
    [
        {"to": STRANGER}, {"to": None}, {"value": "0x1"}, {"from": STRANGER}, {"chainId": "0x1"}, {"data": "0x"},
        {"data": "0x12345678"}, {"data": "zz"}, {"data": None}, {"input": "0x00"}, {"value": "much"},
    ],
    ids=str,
)  # fmt: skip
async def test_another_transaction_is_refused(page: Page, grid: Grid, fields: dict[str, Any]) -> None:
    assert "error" in await page.send("Credit", "transfer", STRANGER, CREDIT, **fields)
    assert transactions(page, grid) == 0


async def test_functions_that_the_page_does_not_need_are_refused(page: Page, grid: Grid) -> None:
    scheduler = page.chain.book.meta_scheduler
    assert "error" in await page.send("Credit", "approve", STRANGER, CREDIT)
    assert "error" in await page.send("Credit", "transferFrom", STRANGER, page.wallet.address, 1)
    assert "error" in await page.send("Credit", "mint", STRANGER, 1)
    assert "error" in await page.send("MetaScheduler", "transferOwnership", STRANGER)
    assert "error" in await page.send("ProviderManager", "ban", scheduler)
    assert transactions(page, grid) == 0


async def test_dps_sends_with_the_same_key_at_the_same_time(page: Page) -> None:
    own = Sender(page.chain, Wallet.load(Path(str(page.wallet.key_file))))
    writer = Writer(page.chain, own)
    by_page = [page.send("Credit", "transfer", STRANGER, CREDIT) for _ in range(5)]
    by_dps = [writer.transfer(STRANGER, CREDIT) for _ in range(5)]
    answers = await asyncio.gather(*by_page, *by_dps)
    assert all("result" in answer for answer in answers[:5])
    assert await page.chain.balance(page.wallet.address) == 9_990 * CREDIT
    await own.close()


async def test_a_budget_binds_the_page_too(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write_budget(page.chain.book, page.wallet.address, Budget(wei=str(300 * CREDIT), per="month"))
    assert "result" in await page.send("Credit", "approve", page.chain.book.meta_scheduler, 500 * CREDIT)
    refused = (await page.request(301))["error"]["message"]
    assert refused.startswith("The budget is 300 credits per month: 0 are spent or locked since ")
    assert "result" in await page.request(300)
    assert "error" in await page.request(100)
