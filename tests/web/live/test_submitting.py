"""A job is submitted with few prompts, and a refusal at any of them locks nothing."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from deepgrid.lifecycle.states import JobStatus
from tests.appending import push_log
from tests.chain.grid import pass_a_second
from tests.cli.live import CREDIT
from tests.web.live.stage import PATIENCE_MS, Stage, opened
from tests.web.live.submitting import PERMIT, SEND, SESSION, go_on, start, submitted

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.asyncio(loop_scope="session")]


@pytest.mark.parametrize("approve", [False, True], ids=["permit", "approve"])
async def test_a_job_is_submitted_and_its_bill_adds_up(stage: Stage, browser: Browser, approve: bool) -> None:
    async with opened(stage, browser) as page:
        await start(page, approve=approve)
        panel = page.get_by_role("dialog")
        await expect(panel).to_contain_text(stage.chain.book.meta_scheduler)
        await expect(panel).to_contain_text("100 credits at most")
        assert stage.wallet.prompts == ["eth_requestAccounts"]
        await go_on(page)
        job_id = await submitted(page, stage)
        second = SEND if approve else "eth_signTypedData_v4"
        assert stage.wallet.prompts == ["eth_requestAccounts", "eth_signTypedData_v4", second, SEND]
        assert [typed["primaryType"] for typed in stage.wallet.signed] == [SESSION, *([] if approve else [PERMIT])]
        job = await stage.chain.job(job_id)
        assert (job.locked_wei, job.name, job.wishes.max_rate_wei) == (100 * CREDIT, "hello-world", PRICE_WEI)
        assert await stage.chain.allowance(stage.address) == 0
        await run_on_cluster(stage, job_id)
        await expect(page.get_by_text("finished").first).to_be_visible(timeout=PATIENCE_MS)
        await page.get_by_role("tab", name="Log").click()
        await expect(page.get_by_text("Hello from the cluster")).to_be_visible(timeout=PATIENCE_MS)
        await page.get_by_placeholder("Search the log").fill("the cluster")
        await page.get_by_role("button", name="Find", exact=True).click()
        await expect(page.get_by_text("1 of 1 lines")).to_be_visible(timeout=PATIENCE_MS)


PRICE_WEI = CREDIT // 2 + 128 * CREDIT // 1000


async def run_on_cluster(stage: Stage, job_id: int) -> None:
    """Run the job as a provider does."""
    await stage.operator.writer.meta_schedule(job_id, stage.provider.address)
    await stage.provider.writer.claim_next_jobs(1)
    await stage.provider.writer.set_running(job_id, 0)
    await pass_a_second(stage.chain)
    await push_log(stage.provider.services, job_id, 0, b"Hello from the cluster\n", final=True)
    await stage.provider.writer.settle(job_id, JobStatus.FINISHED, 1)


@pytest.mark.parametrize("refused", [SESSION, PERMIT, SEND])
async def test_a_refusal_locks_nothing_and_can_be_repeated(stage: Stage, browser: Browser, refused: str) -> None:
    async with opened(stage, browser) as page:
        stage.wallet.refuses = {refused}
        await start(page)
        await go_on(page)
        await page.get_by_text("You refused this in your wallet.").wait_for()
        assert await stage.jobs() == []
        assert await stage.chain.balance(stage.address) == 1000 * CREDIT
        assert await stage.chain.allowance(stage.address) == 0
        stage.wallet.refuses = set()
        await go_on(page, "Try again")
        await submitted(page, stage)


async def test_a_wallet_that_reads_something_else_stops_the_submission(stage: Stage, browser: Browser) -> None:
    async with opened(stage, browser) as page:
        stage.wallet.lies = {"eth_call": "0x" + (10**30).to_bytes(32).hex()}
        await start(page)
        await go_on(page)
        await page.get_by_text("disagree about the balance. Nothing was signed; try again later.").wait_for()
        assert stage.wallet.prompts == ["eth_requestAccounts"] and await stage.jobs() == []
        stage.wallet.lies = {}
        await go_on(page, "Try again")
        await submitted(page, stage)
