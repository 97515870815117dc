"""JupyterLab and TensorBoard in a real browser, and the programs themselves in jobs."""

from __future__ import annotations

import io
import os
import re
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from PIL import Image
from playwright.async_api import Page, async_playwright, expect

from tests.grid.prefect_ui import CHROMIUM, PATIENCE_MS, QUIET

ROOT = Path(__file__).resolve().parents[2]
PICTURES = "DEEPGRID_PICTURES"  # in the environment: the folder that takes a picture of each page
COLOURS = 64
PLOT = "import matplotlib.pyplot as plt; plt.plot([n * n for n in range(20)]);"


def programs() -> Path:
    """Return the folder of `jupyter` and `tensorboard`. Installs them into an environment of their own at first."""
    install = "source tools/setup.sh && use_a_home && ensure_tool notebook"
    subprocess.run(["bash", "-c", install], cwd=ROOT, check=True)
    return ROOT / ".grid" / "notebook" / "bin"


def example(name: str, page_port: int, port: int) -> str:
    """Return an example of the guide, with the programs on its PATH and another port: nodes share this machine's."""
    text = (ROOT / "examples" / "sessions" / f"{name}.yaml").read_text()
    text = re.sub(r"^( +)command: \|\n( +)", rf"\g<0>export PATH={programs()}:$PATH\n\2", text, count=1, flags=re.M)
    return text.replace(str(page_port), str(port))


@asynccontextmanager
async def browser() -> AsyncIterator[Page]:
    """Yield a page of headless chromium."""
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        try:
            page = await chromium.new_page(viewport={"width": 1100, "height": 640})
            page.set_default_timeout(PATIENCE_MS)
            yield page
        finally:
            await chromium.close()


async def log_in(page: Page, token: str) -> None:
    """Log in to Jupyter with the token of the job's log, and wait for its launcher."""
    await page.locator("#password_input").fill(token)
    await page.locator("#login_submit").click()
    await page.wait_for_url("**/lab**")
    await page.goto(page.url.split("?")[0] + "?reset")  # as a customer who comes for the first time
    await page.locator(".jp-LauncherCard[data-category=Notebook]").first.wait_for()


async def plot(page: Page) -> bytes:
    """Make a plot in a new notebook, and return the picture that the page shows as PNG."""
    await page.locator(".jp-LauncherCard[data-category=Notebook]").first.click()
    await expect(page.locator(".jp-Notebook-ExecutionIndicator").first).to_have_attribute(
        "data-status", "idle", timeout=PATIENCE_MS
    )
    cell = page.locator(".jp-Notebook .jp-Cell .cm-content").first
    await cell.click()
    await cell.fill(PLOT)
    await expect(cell).to_contain_text("matplotlib", timeout=PATIENCE_MS)
    await page.keyboard.press("Shift+Enter")
    shown = page.locator(".jp-RenderedImage img").first
    await shown.wait_for()
    got = await shown.evaluate("async image => [...new Uint8Array(await (await fetch(image.src)).arrayBuffer())]")
    return bytes(got)


async def take_picture(page: Page, name: str) -> None:
    """Save a small picture of the page, if the environment names a folder for it."""
    if folder := os.environ.get(PICTURES):
        shot = Image.open(io.BytesIO(await page.screenshot())).convert("RGB").quantize(COLOURS)
        shot.save(Path(folder) / f"{name}.png", optimize=True)
