"""Files go from the browser to a job, and its results come back: list, preview, download, a link for others."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from deepgrid.client.files import KeptFiles, file_exchange
from deepgrid.client.settings import ClientSettings
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.client import FilesClient
from deepgrid.services.files.manifest import FileEntry, Manifest
from tests.services.files.support import content_of, filled, get
from tests.web.live.stage import PATIENCE_MS, Stage, opened
from tests.web.live.submitting import go_on, start, submitted

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.asyncio(loop_scope="session")]

SVG = (
    b'<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20" onload="alert(1)">'
    b'<rect width="9" height="9"/></svg>'
)
SCRIPT = b"1,<script>alert(1)</script>\n"
LEFT = {"plots/a & b.svg": SVG, "table.csv": SCRIPT, "weights.bin": b"\0\1\2" * 1000}


@pytest.mark.deep
async def test_files_go_to_a_job_and_come_back(stage: Stage, browser: Browser, tmp_path: Path) -> None:
    folder = filled(tmp_path / "laptop", {"params.json": b'{"seed": 7}', "data.csv": b"1,2\n" * 300_000})
    async with opened(stage, browser) as page:
        await page.evaluate("location.hash = '/new'")
        await page.locator("input[type=file]").first.set_input_files([folder / "params.json", folder / "data.csv"])
        await page.get_by_text("2 files, 1.1 MiB: params.json, data.csv").wait_for()
        await start(page)
        await go_on(page)
        job_id = await submitted(page, stage)

        await stage.operator.writer.meta_schedule(job_id, stage.provider.address)
        await stage.provider.writer.claim_next_jobs(1)
        await stage.provider.writer.set_running(job_id, 0)
        provider = FilesClient(stage.provider.services)
        transfers = await provider.transfers(job_id)
        assert await received(provider.url(transfers.input or ""), tmp_path / "node") == content_of(folder)
        await leave(provider.url(transfers.output or ""), LEFT)
        await stage.provider.writer.settle(job_id, JobStatus.FINISHED, 1, "", 0)

        await page.get_by_role("tab", name="Files").click()
        await page.get_by_text("3 files, 3.1 KiB").wait_for(timeout=PATIENCE_MS)
        await look_at_each(page)
        async with page.expect_download() as saving:
            await page.get_by_role("link", name="Download all (zip)").click()
        archive = zipfile.ZipFile(await (await saving.value).path())
        assert {name: archive.read(name) for name in archive.namelist()} == LEFT
        await share_and_revoke(page)


async def received(url: str, to: Path) -> dict[str, bytes]:
    """Return what the job finds as its input."""
    async with file_exchange(url, None) as exchange:
        kept = KeptFiles(exchange, ClientSettings())
        await kept.fetch(await kept.manifest(), to, lambda _: True)
    return content_of(to)


async def leave(url: str, files: dict[str, bytes]) -> None:
    """Send files as the script of a job does."""
    entries = [FileEntry(name, len(data), 0o644, hashlib.sha256(data).hexdigest()) for name, data in files.items()]
    contents = {"manifest": Manifest.of(entries).text, "parts/0": b"".join(files.values()), "finish": b""}
    async with file_exchange(url, None) as exchange:
        for what, content in contents.items():
            await exchange.put(what, content, hashlib.sha256(content).hexdigest())


async def look_at_each(page: Page) -> None:
    """Open the preview of an image, a text and neither. What a file says is never a part of the page."""
    await page.get_by_role("button", name="plots/a & b.svg").click()
    image = page.get_by_role("img", name="plots/a & b.svg")
    await expect(image).to_have_js_property("naturalWidth", 40, timeout=PATIENCE_MS)
    await page.get_by_role("button", name="table.csv").click()
    await expect(page.locator(".preview pre")).to_have_text("1,<script>alert(1)</script>", timeout=PATIENCE_MS)
    await page.get_by_role("button", name="weights.bin").click()
    await page.get_by_text("This is neither text nor an image.").wait_for()


async def share_and_revoke(page: Page) -> None:
    await page.get_by_label("Works for").select_option("1 day")
    await page.get_by_role("button", name="Make a link").click()
    link = await page.locator(".made code").inner_text()
    archive = zipfile.ZipFile(io.BytesIO((await get(link)).content))
    assert set(archive.namelist()) == set(LEFT)
    await page.get_by_text("1 link works").wait_for()
    await page.get_by_role("button", name="Revoke the link").click()
    await page.get_by_text("The links to these files work no more.").wait_for()
    assert (await get(link)).status_code == 404


async def test_files_of_others_are_not_asked_for(stage: Stage, browser: Browser) -> None:
    async with opened(stage, browser) as page:
        await start(page)
        await go_on(page)
        job_id = await submitted(page, stage)
        await page.evaluate("id => { location.hash = `/jobs/${id}?tab=files`; }", job_id)
        await page.get_by_text("There are no files yet.").wait_for()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        await page.evaluate("window.walletSays('accountsChanged', ['0x' + '1'.repeat(40)])")
        await page.get_by_text("The files belong to the job's customer.").wait_for()
        assert not [url for url in asked if url.endswith("/files")]
