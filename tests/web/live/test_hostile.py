"""Texts of strangers stay texts wherever they can write them, and a reader sees the cleaned text."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, Page, expect

from deepgrid.chain.batches import BatchWriter, Report, Request
from deepgrid.client.display.text import COLOUR, LogLines
from deepgrid.lifecycle.job import JobDefinition, Label
from deepgrid.lifecycle.states import JobStatus
from deepgrid.plain_text import mark_controls
from tests.appending import push_log
from tests.chain.grid import approve_waiting
from tests.cli.live import HARDWARE, PRICES
from tests.web.live.hostile_texts import hostile_texts
from tests.web.live.many_jobs_support import DEPOSIT_WEI, run_jobs
from tests.web.live.stage import PATIENCE_MS, Stage, opened

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.asyncio(loop_scope="session")]

TEXTS = hostile_texts()
SHOWN_AT_FIRST = 14  # labels of a cluster
NAME_BYTES, LABELS_AT_ONCE, NOTICES_AT_ONCE, WALLETS_AT_ONCE, WALLET_CHARS = 32, 60, 75, 20, 60
MADE = (
    "main :is(script, iframe, object, embed, base, link, style, video, audio, math, form[action], img:not([alt='']), b)"
)
ROWS = """() => [...document.querySelectorAll("tr[data-job]")].flatMap((row) => {
  const [name, why] = row.querySelectorAll(".name .cut");
  return name ? [[Number(row.dataset.job), name.textContent, why.textContent]] : [];
})"""
SCROLL = """async (view, place) => {
  view.scrollTop = (view.scrollHeight * place) / 100;
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""
PASTE = """(editor, text) => {
  const clipboardData = new DataTransfer();
  clipboardData.setData("text/plain", text);
  editor.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
}"""
LINES = "() => [...document.querySelectorAll('.line .text')].map((one) => one.textContent)"


@asynccontextmanager
async def unharmed(stage: Stage, browser: Browser) -> AsyncIterator[Page]:
    """Yield a page that must not run a text, make an element of it, or send a request to another host."""
    async with opened(stage, browser) as page:
        dialogs: list[str] = []
        foreign: list[str] = []
        page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        page.on("request", lambda asked: None if asked.url.startswith(own) else foreign.append(asked.url))
        own = (stage.hosted.url, "data:", "blob:")
        yield page
        assert (dialogs, foreign, await page.evaluate("window.hit")) == ([], [], None)


async def show(page: Page, place: str) -> None:
    await page.evaluate("place => { location.hash = place; }", place)
    await page.locator("main h1").first.wait_for()
    await page.locator("[aria-busy=true]").first.wait_for(state="detached")
    await assert_texts_only(page)


async def assert_texts_only(page: Page) -> None:
    assert (await page.locator(MADE).count(), await page.evaluate("window.hit")) == (0, None)
    assert await page.locator("main a:not([href^='#'])").count() == 0


async def job_of(stage: Stage, name: str) -> int:
    customer = stage.customer()
    job_id = await customer.writer.request_job(
        JobDefinition(0, 1, 1, 1, "ab" * 32), DEPOSIT_WEI, name, approve_first=DEPOSIT_WEI
    )
    await customer.close()
    return job_id


def parts(count: int) -> Iterator[list[str]]:
    return (TEXTS[first : first + count] for first in range(0, len(TEXTS), count))


async def failed_jobs(stage: Stage) -> dict[int, tuple[str, str]]:
    """Return the id, name and error of failed jobs. A name is as much of the text as fits."""
    customer, wanted = stage.customer(), dict[int, tuple[str, str]]()
    writer, cluster = (BatchWriter(one.writer.chain, one.writer.sender) for one in (customer, stage.provider))
    await stage.operator.writer.mint(customer.address, len(TEXTS) * DEPOSIT_WEI)
    await customer.writer.approve(len(TEXTS) * DEPOSIT_WEI)
    for texts in parts(100):
        names = [text.encode()[:NAME_BYTES].decode(errors="ignore") for text in texts]
        definition = JobDefinition(0, 1, 1, 1, "ab" * 32)
        ids = await writer.request_jobs([Request(definition, DEPOSIT_WEI, name) for name in names])
        await run_jobs(stage, ids)
        ends = [Report(one, JobStatus.FAILED, 1, text, 256) for one, text in zip(ids, texts, strict=True)]
        await cluster.report_jobs(ends)
        wanted |= dict(zip(ids, zip(names, texts, strict=True), strict=True))
    await customer.close()
    return wanted


async def test_names_and_errors_of_jobs(stage: Stage, browser: Browser) -> None:
    wanted = await failed_jobs(stage)
    seen: dict[int, tuple[str, str]] = {}
    async with unharmed(stage, browser) as page:
        await show(page, "/jobs")
        for place in range(0, 101, 5):
            await page.evaluate("place => scrollTo(0, (document.body.scrollHeight * place) / 100)", place)
            await page.evaluate("new Promise(requestAnimationFrame)")
            await expect(page.get_by_text("reading…")).to_have_count(0, timeout=PATIENCE_MS)
            seen |= {job_id: (name, why) for job_id, name, why in await page.evaluate(ROWS)}
            await assert_texts_only(page)
        await show(page, f"/jobs/{max(wanted)}")
    shown = {
        one: (mark_controls(name), mark_controls(f"exit status 1: {error}")) for one, (name, error) in wanted.items()
    }
    assert seen == shown


async def test_labels_of_clusters(stage: Stage, browser: Browser) -> None:
    async with unharmed(stage, browser) as page:
        for texts in parts(LABELS_AT_ONCE):
            labels = (Label("name", texts[0]), *(Label(text, text) for text in texts))
            await stage.provider.writer.register(HARDWARE, PRICES, labels)
            await approve_waiting(stage.operator.writer, stage.provider.address)
            await page.reload()
            await show(page, "/")
            await show(page, f"/clusters/{stage.provider.address}")
            table = page.locator("main table.labels")
            shown = table.get_by_text(mark_controls(texts[0]), exact=True).or_(
                table.get_by_text(mark_controls(texts[1]), exact=True)
            )
            await expect(shown.first).to_be_visible(timeout=PATIENCE_MS)
            if len(texts) > SHOWN_AT_FIRST:
                await page.get_by_role("button", name=f"Show all {len(texts)} labels").click()
            await expect(table.locator("tbody tr")).to_have_count(len(texts), timeout=PATIENCE_MS)
            wanted = {mark_controls(text) for text in texts}
            for cells in ("td:nth-child(2) > code", "td:nth-child(3) > span:first-child"):
                assert set(await table.locator(cells).all_text_contents()) == wanted
            await show(page, "/new")


async def test_remarks_on_jobs(stage: Stage, browser: Browser) -> None:
    async with unharmed(stage, browser) as page:
        for texts in parts(NOTICES_AT_ONCE):
            job_id = await job_of(stage, texts[0].encode()[:NAME_BYTES].decode(errors="ignore"))
            await stage.operator.services.post_notices([(job_id, "waiting", text) for text in texts])
            stored = await stage.operator.services.notices(job_id)
            assert len(stored) >= 10  # many are equal once the service has cleaned them
            await show(page, f"/jobs/{job_id}")
            await page.wait_for_function(
                "count => document.querySelectorAll('main li').length > count", arg=len(stored), timeout=PATIENCE_MS
            )
            shown = await page.locator("main li div > span").all_text_contents()
            assert {mark_controls(one.text) for one in stored} <= set(shown)
            await assert_texts_only(page)


async def test_output_of_jobs(stage: Stage, browser: Browser) -> None:
    job_id = await job_of(stage, "output")
    await run_jobs(stage, [job_id])
    output = "\n".join(TEXTS).encode() + b"\n\xff\x00 end\n"
    await push_log(stage.provider.services, job_id, 0, output, final=True)
    lines = [COLOUR.sub("", line) for line in LogLines().feed(output, final=True)]
    wanted = {"\t".join(map(mark_controls, line.split("\t"))) for line in lines}
    async with unharmed(stage, browser) as page:
        await page.goto(re.sub("#.*", f"#/jobs/{job_id}", page.url))
        await page.get_by_role("tab", name="Log").click()
        await page.get_by_role("button", name="Read the log").click()
        await page.locator(".view .line").first.wait_for()
        seen: set[str] = set()
        async with asyncio.timeout(PATIENCE_MS / 1000):
            while not wanted <= seen:
                for place in range(0, 101, 2):
                    await page.locator(".view").evaluate(SCROLL, place)
                    seen |= set(await page.evaluate(LINES))
        await assert_texts_only(page)


async def test_files_and_modules(stage: Stage, browser: Browser) -> None:
    keys = "\n".join(f"{json.dumps(text)}: {json.dumps(text)}" for text in TEXTS)
    steps = "\n".join(f"  - name: {json.dumps(text)}\n    use: {json.dumps(text)}" for text in TEXTS[:50])
    async with unharmed(stage, browser) as page:
        await show(page, "/new")
        for text in (keys, f"steps:\n{steps}\n", "\n".join(TEXTS)):
            await page.locator(".cm-content").press("Control+a")
            await page.locator(".cm-content").evaluate(PASTE, text)
            check, faults = page.get_by_role("button", name="Check", exact=True), page.locator(".faults li")
            await check.or_(faults).first.wait_for()
            if await check.count():
                await check.click()
            await faults.first.wait_for()
            await assert_texts_only(page)


async def test_names_and_pictures_of_wallets(stage: Stage, browser: Browser) -> None:
    for texts in parts(WALLETS_AT_ONCE):
        context = await browser.new_context()
        page = await context.new_page()
        await page.add_init_script(announcing(texts))
        await page.goto(f"{stage.hosted.url}/#/wallet")
        buttons = page.locator("button.wallet")
        await expect(buttons).to_have_count(len(texts), timeout=PATIENCE_MS)
        shown = [one.strip() for one in await buttons.all_text_contents()]
        assert shown == [mark_controls(text[:WALLET_CHARS]).strip() for text in texts]
        sources = await page.locator("main img").evaluate_all("all => all.map((one) => one.src.slice(0, 11))")
        assert set(sources) <= {"data:image/"}
        assert await page.evaluate("window.hit") is None
        await context.close()


def announcing(texts: list[str]) -> str:
    """Return a script that announces a wallet per text. Every second icon is a drawing with the text in it."""
    icons = [text if at % 2 else f"data:image/svg+xml,<svg onload=window.hit=1>{text}" for at, text in enumerate(texts)]
    infos = [
        {"uuid": str(at), "name": text, "icon": icon, "rdns": text}
        for at, (text, icon) in enumerate(zip(texts, icons, strict=True))
    ]
    return f"""
    addEventListener("eip6963:requestProvider", () => {{
      for (const info of {json.dumps(infos)}) {{
        const detail = {{ info, provider: {{ request: async () => [] }} }};
        dispatchEvent(new CustomEvent("eip6963:announceProvider", {{ detail }}));
      }}
    }});
    """
