"""The page is usable at once, a quote follows the slider, and states and output appear soon."""

from __future__ import annotations

import re
import statistics
import time

import pytest
from playwright.async_api import Browser, Page, expect

from deepgrid.lifecycle.job import JobDefinition
from deepgrid.lifecycle.states import JobStatus
from tests.appending import push_log
from tests.cli.live import CREDIT
from tests.web.live.stage import PATIENCE_MS, Stage, opened

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.asyncio(loop_scope="session")]

ONCE, OFTEN = 1, 5  # tries; a median of several is for the deep test
PLACES = (400, 550, 700, 850, 1000)  # of the slider
SHELL_S, EDITOR_S, QUOTE_S, STATE_S, LINE_S = 1.0, 1.5, 0.3, 3.0, 2.0
ROOM = 10  # for a busy machine

# Moves the slider and waits for another quote. Gives seconds.
SLIDE = """async (place) => {
  const shown = () => document.querySelector("td.number:last-child")?.innerText;
  const slider = document.querySelector("input[type=range]");
  const before = shown();
  const started = performance.now();
  slider.value = place;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  while (shown() === before) {
    if (performance.now() - started > 60_000) throw new Error("the quote stays as it was");
    await new Promise(requestAnimationFrame);
  }
  return (performance.now() - started) / 1000;
}"""


async def opening_s(stage: Stage, browser: Browser, fragment: str, selector: str, tries: int) -> float:
    """Return the median seconds from an empty browser until the element is there."""
    taken = []
    for _ in range(tries):
        context = await browser.new_context()
        page = await context.new_page()
        started = time.monotonic()
        await page.goto(f"{stage.hosted.url}/{fragment}")
        await page.locator(selector).first.wait_for(timeout=PATIENCE_MS)
        taken.append(time.monotonic() - started)
        await context.close()
    return statistics.median(taken)


async def quote_s(page: Page, tries: int) -> float:
    await page.evaluate("location.hash = '/new'")
    await page.locator("td.number").first.wait_for(timeout=PATIENCE_MS)
    return statistics.median([await page.evaluate(SLIDE, str(place)) for place in PLACES[:tries]])


async def new_job(stage: Stage) -> int:
    customer = stage.customer()
    definition = JobDefinition(0, 1, 1, 1, "ab" * 32)
    job_id = await customer.writer.request_job(definition, 100 * CREDIT, "quick", approve_first=100 * CREDIT)
    await customer.close()
    return job_id


async def state_s(stage: Stage, page: Page, tries: int) -> float:
    """Return the seconds from a block with a new state until the page shows it."""
    taken = []
    for _ in range(tries):
        job_id = await new_job(stage)
        await page.evaluate("place => { location.hash = place; }", f"/jobs/{job_id}")
        badge = page.locator(".facts .badge")
        await expect(badge).to_have_text(re.compile("PENDING$", re.I), timeout=PATIENCE_MS)
        await stage.operator.writer.meta_schedule(job_id, stage.provider.address)
        started = time.monotonic()
        await expect(badge).to_have_text(re.compile("META-SCHEDULED$", re.I), timeout=PATIENCE_MS)
        taken.append(time.monotonic() - started)
        await stage.provider.writer.claim_next_jobs(1)
        await stage.provider.writer.settle(job_id, JobStatus.FAILED, 0, "", 256)
    return statistics.median(taken)


async def line_s(stage: Stage, page: Page, tries: int) -> float:
    """Return the seconds from the service's answer until the line is in the page."""
    job_id = await new_job(stage)
    await stage.operator.writer.meta_schedule(job_id, stage.provider.address)
    await stage.provider.writer.claim_next_jobs(1)
    await stage.provider.writer.set_running(job_id, 0)
    end = await push_log(stage.provider.services, job_id, 0, b"begins\n")
    await page.evaluate("place => { location.hash = place; }", f"/jobs/{job_id}")
    await page.get_by_role("tab", name="Log").click()
    await page.get_by_role("button", name="Read the log").click()
    await page.get_by_text("begins").wait_for(timeout=PATIENCE_MS)
    taken = []
    for number in range(tries):
        end = await push_log(stage.provider.services, job_id, end, f"line {number} is here\n".encode())
        started = time.monotonic()
        await page.get_by_text(f"line {number} is here").wait_for(timeout=PATIENCE_MS)
        taken.append(time.monotonic() - started)
    return statistics.median(taken)


@pytest.mark.parametrize("tries", [ONCE, pytest.param(OFTEN, marks=pytest.mark.deep)])
async def test_nobody_waits_for_the_page(stage: Stage, browser: Browser, tries: int) -> None:
    limits = {"shell": SHELL_S, "editor": EDITOR_S, "quote": QUOTE_S, "state": STATE_S, "line": LINE_S}
    taken = {
        "shell": await opening_s(stage, browser, "#/", "main tbody tr", tries),
        "editor": await opening_s(stage, browser, "#/new", ".cm-content[contenteditable=true]", tries),
    }
    async with opened(stage, browser) as page:
        taken["quote"] = await quote_s(page, tries)
        taken["state"] = await state_s(stage, page, tries)
        taken["line"] = await line_s(stage, page, tries)
    print(", ".join(f"{name} {seconds:.2f} s" for name, seconds in taken.items()))
    assert {name: seconds for name, seconds in taken.items() if seconds > ROOM * limits[name]} == {}
