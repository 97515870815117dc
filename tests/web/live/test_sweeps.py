"""Sweeps in the list of jobs: one row each, parameters as columns, failed jobs repeated once. Tags filter the list."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.async_api import Browser, expect

from deepgrid.chain.batches import BatchWriter, Request
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.kept_messages import JobMark, SweepPlace
from deepgrid.workflow import parse
from tests.cli.live import CREDIT, EXAMPLE
from tests.web.live.many_jobs_support import SMALL, run_jobs
from tests.web.live.stage import PATIENCE_MS, Stage, opened
from tests.web.live.submitting import SEND, SESSION, go_on

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.asyncio(loop_scope="session")]

SWEEP = "00112233aabbccdd"
EXIT_3 = 768


async def sweep_of_two(stage: Stage) -> list[int]:
    """Run a sweep of two jobs, and one job outside it. The first one fails."""
    customer, definition = stage.customer(), parse(EXAMPLE.read_text(), "job.yaml").model
    hashes = [await customer.services.upload(definition) for _ in range(3)]
    places = [SweepPlace(id=SWEEP, name="wing", at=at, of=2, parameters=[{"RATE": f"0.{at}"}]) for at in (1, 2)]
    tags = {"project": "wing"}
    marks = [JobMark(definition_hash=one, tags=tags, sweep=place) for one, place in zip(hashes, places, strict=False)]
    await customer.services.write_marks(marks)
    await customer.writer.approve(300 * CREDIT)
    batch = BatchWriter(customer.writer.chain, customer.writer.sender)
    asked = [replace(SMALL, definition_hash=one, mem_per_cpu_mb=128) for one in hashes]
    made = await batch.request_jobs([Request(one, 100 * CREDIT, "wing") for one in asked])
    await run_jobs(stage, made)
    ends = [JobStatus.FAILED, JobStatus.FINISHED, JobStatus.FINISHED]
    statuses = [EXIT_3, 0, 0]
    for job_id, end, status in zip(made, ends, statuses, strict=True):
        await stage.provider.writer.settle(job_id, end, 1, "", status)
    await customer.close()
    return list(made)


async def test_a_sweep_is_one_row_and_its_failed_job_is_repeated_once(stage: Stage, browser: Browser) -> None:
    failed, finished, alone = await sweep_of_two(stage)
    async with opened(stage, browser) as page:
        await page.evaluate("location.hash = '/jobs'")
        await expect(page.locator("tr.job")).to_have_count(3, timeout=PATIENCE_MS)  # nothing is signed unasked
        assert SESSION not in [typed["primaryType"] for typed in stage.wallet.signed]
        await page.get_by_role("button", name="Show them").click()
        await expect(page.locator("tr.job")).to_have_count(2, timeout=PATIENCE_MS)
        await (
            page.get_by_text("1 finished, 1 failed of 2").or_(page.get_by_text("1 failed, 1 finished of 2")).wait_for()
        )

        await page.get_by_label("Tag").select_option("project=wing")
        await page.get_by_text("2 of 3 jobs").wait_for()
        await page.get_by_role("link", name="▸ wing").click()
        await expect(page.get_by_role("columnheader", name="RATE")).to_be_visible(timeout=PATIENCE_MS)
        await expect(page.get_by_role("row", name="0.1")).to_contain_text("exit status 3")
        await expect(page.get_by_role("link", name=str(finished), exact=True)).to_be_visible()

        stage.wallet.refuses.add(SEND)
        await page.get_by_role("button", name="Retry 1 failed").click()
        await page.get_by_text("100 credits at most in all").wait_for()
        await go_on(page)
        await page.get_by_role("dialog").get_by_text("refused").wait_for()
        assert len(await stage.jobs()) == 3
        stage.wallet.refuses.clear()
        await go_on(page, "Try again")
        await page.get_by_role("dialog").get_by_text(f"Job {failed} again").wait_for()
        await page.get_by_role("dialog").get_by_role("button", name="Close", exact=True).last.wait_for()
        await expect(page.get_by_text("2 attempts")).to_be_visible(timeout=PATIENCE_MS)
        new = max(await stage.jobs())
        assert sorted(await stage.jobs()) == [failed, finished, alone, new]
        job = await stage.chain.job(new)
        assert (job.locked_wei, job.status) == (100 * CREDIT, JobStatus.PENDING)
        assert await stage.chain.allowance(stage.address) == 0
        async with stage.customer().services as services:
            assert (await services.marks(sweep=SWEEP))[job.definition.definition_hash].sweep is not None
