"""A long log opens at its end, is searched as a whole, and is downloaded as it was written.

In the deep test it has a million lines.
"""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from deepgrid.lifecycle.job import JobDefinition
from tests.appending import push_log
from tests.cli.live import CREDIT
from tests.web.live.stage import PATIENCE_MS, Stage, opened

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.asyncio(loop_scope="session")]

FEW, MANY, LINE_BYTES = 100_000, 1_000_000, 67
LAST_LINES_S, SEARCH_S, MOST_NODES = 2, 3, 3000
ROOM = 10  # for a busy machine
RARE = 77_777  # the only line with the word


def long_log(count: int) -> bytes:
    """Lines of equal length; a million are 64 MiB."""
    wide = LINE_BYTES - 1
    return b"".join(
        (f"step {number} " + ("needle" if number == RARE else "x") * wide)[:wide].encode() + b"\n"
        for number in range(1, count + 1)
    )


async def logged_job(stage: Stage, log: bytes) -> int:
    """Return a running job of the customer whose whole output is stored."""
    customer = stage.customer()
    definition = JobDefinition(0, 1, 1, 1, "cd" * 32)
    job_id = await customer.writer.request_job(definition, 100 * CREDIT, "long", approve_first=100 * CREDIT)
    await stage.operator.writer.meta_schedule(job_id, stage.provider.address)
    await stage.provider.writer.claim_next_jobs(1)
    await stage.provider.writer.set_running(job_id, 0)
    await push_log(stage.provider.services, job_id, 0, log, final=True)
    await customer.close()
    return job_id


async def seconds_until(page: Page, text: str, since: float) -> float:
    await expect(page.get_by_text(text).first).to_be_visible(timeout=PATIENCE_MS)
    return time.monotonic() - since


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.deep)])
async def test_a_long_log(stage: Stage, browser: Browser, tmp_path: Path, count: int) -> None:
    log = long_log(count)
    job_id = await logged_job(stage, log)
    async with opened(stage, browser) as page:
        await page.evaluate("place => { location.hash = place; }", f"/jobs/{job_id}")
        await page.get_by_role("tab", name="Log").click()
        started = time.monotonic()
        await page.get_by_role("button", name="Read the log").click()
        last_lines_s = await seconds_until(page, f"step {count} ", started)

        await page.get_by_label("Text to find").fill("NEEDLE")
        started = time.monotonic()
        await page.get_by_role("button", name="Find", exact=True).click()
        search_s = await seconds_until(page, "1 of 1 lines", started)
        await expect(page.get_by_text(f"step {RARE} needle")).to_be_visible(timeout=PATIENCE_MS)

        nodes = await page.evaluate("document.querySelectorAll('*').length")
        async with page.expect_download() as downloading:
            await page.get_by_role("button", name="Download", exact=True).click()
        saved = tmp_path / "job.log"
        await (await downloading.value).save_as(saved)

        print(f"last lines {last_lines_s:.2f} s, search of all {search_s:.2f} s, {nodes} nodes")
        assert hashlib.sha256(saved.read_bytes()).digest() == hashlib.sha256(log).digest()
        assert nodes <= MOST_NODES
        assert last_lines_s <= ROOM * LAST_LINES_S
        assert search_s <= ROOM * SEARCH_S
