"""What a running job uses is on its page: figures, graphs with their words, read again while it runs."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Browser, expect

from deepgrid.billing.use_samples import UseSample
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.states import JobStatus
from tests.web.live.many_jobs_support import run_jobs
from tests.web.live.stage import PATIENCE_MS, Stage, opened
from tests.web.live.submitting import go_on, start, submitted

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.asyncio(loop_scope="session")]


@pytest.mark.deep
async def test_a_running_job_shows_what_it_uses(stage: Stage, browser: Browser) -> None:
    async with opened(stage, browser) as page:
        await page.evaluate("location.hash = '/new'")
        await start(page)
        await go_on(page)
        job_id = await submitted(page, stage)
        await run_jobs(stage, [job_id])
        job, book = await stage.chain.job(job_id), stage.hosted.grid.book
        key = JobKey(book.chain_id, book.meta_scheduler, job_id, job.claimed_at)
        asked_mb = job.definition.mem_per_cpu_mb * job.definition.cpus_per_task * job.definition.ntasks
        for number in (1, 2, 3):
            sample = UseSample(cpu_s=54 * number, memory_mb=asked_mb // (4 - number), run_s=60 * number)
            await stage.provider.services.send_uses({key: sample})

        await page.get_by_role("tab", name="Bill").click()
        section = page.get_by_role("region", name="What it uses")
        await expect(section).to_contain_text("used 0.9", timeout=PATIENCE_MS)
        await expect(section).to_contain_text("In its first 3m.")
        await expect(
            section.get_by_role("img", name=re.compile("^CPUs in use over 3m: asked .* used 0.9$"))
        ).to_be_visible()
        await expect(section.get_by_role("img", name=re.compile("^memory in use over 3m: "))).to_be_visible()
        await stage.provider.writer.settle(job_id, JobStatus.FINISHED, 1, "", 0)
        await expect(page.get_by_role("region", name="What it used")).to_contain_text("used 0.9", timeout=PATIENCE_MS)
