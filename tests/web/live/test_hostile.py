"""W10: texts of strangers stay texts: in names, labels, remarks, errors and logs, and in the name of a wallet."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from deepgrid.lifecycle.job import JobDefinition, Label
from deepgrid.lifecycle.states import JobStatus
from tests.chain.grid import approve_waiting
from tests.cli.live import CREDIT, HARDWARE, LABELS, PRICES
from tests.web.live.conftest import PATIENCE_MS, Stage, opened

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

MARKUP = "<img src=x onerror=window.hit=1>"
TEXTS = [
    MARKUP,
    "<script>window.hit=1</script>",
    "<svg onload=window.hit=1>",
    "javascript:window.hit=1",
    "{@html '<b>x</b>'}",
    "a\u202eb\u2066c",
    "\x1b]8;;http://example.invalid\x07link\x1b]8;;\x07",
    "\x1b[31mred\x1b[0m \x1b[2J\x1b[H",
    "'\"><iframe srcdoc='<script>parent.hit=1</script>'>",
    "&lt;b&gt;&#x202e;",
]


async def hostile_job(stage: Stage) -> int:
    """A job whose name, cluster, remarks, error and log are hostile."""
    definition = JobDefinition(0, 1, 1, 1, "ab" * 32, uses=(Label("<b>", MARKUP),))
    labels = (*LABELS, Label("<i>x</i>", MARKUP), Label("name", MARKUP), Label("os", "a\u202eb"))
    await stage.provider.writer.register(HARDWARE, PRICES, labels)
    await approve_waiting(stage.operator.writer, stage.provider.address)
    customer = stage.customer()
    job_id = await customer.writer.request_job(definition, 100 * CREDIT, MARKUP, approve_first=100 * CREDIT)
    await stage.operator.writer.meta_schedule(job_id, stage.provider.address)
    await stage.provider.writer.claim_next_jobs(1)
    await stage.provider.writer.set_running(job_id, 0)
    for text in TEXTS:
        await stage.provider.services.post_notice(job_id, "waiting", text)
    await stage.provider.services.push_log(job_id, 0, "\n".join(TEXTS).encode() + b"\xff\x00\n", final=True)
    await stage.provider.writer.settle(job_id, JobStatus.FAILED, 1, MARKUP, 256)
    await customer.close()
    return job_id


async def test_texts_of_strangers_stay_texts(stage: Stage, browser: Browser) -> None:
    job_id = await hostile_job(stage)
    async with opened(stage, browser) as page:
        dialogs: list[str] = []
        page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        places = ["/", f"/clusters/{stage.provider.address}", "/jobs", f"/jobs/{job_id}", "/new", "/wallet", "/grid"]
        for place in places:
            await page.evaluate("place => { location.hash = place; }", place)
            await page.locator("main h1").first.wait_for()
            await page.locator("[aria-busy=true]").first.wait_for(state="detached")
            made = await page.locator("main img, main iframe, main script, main svg[onload], main b").count()
            assert (made, await page.evaluate("window.hit")) == (0, None), place
        await page.evaluate("place => { location.hash = place; }", f"/jobs/{job_id}")
        await page.get_by_role("tab", name="Log").click()
        await page.get_by_role("button", name="Read the log").click()
        await expect(page.get_by_text("<svg onload=window.hit=1>")).to_be_visible(timeout=PATIENCE_MS)
        shown = await page.locator("main").inner_text()
        assert not set(shown) & {"\u202e", "\u2066", "\x1b", "\x07"}
        assert await page.locator("main a[href^='http'], main a[href^='javascript']").count() == 0
        assert (dialogs, await page.evaluate("window.hit")) == ([], None)
