"""The guide to sessions, as a new customer follows it: Jupyter and TensorBoard.

With DEEPGRID_PICTURES=docs/images/sessions in the environment, it also takes the pictures of the guide.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PIL import Image

from tests.grid.customer import DPS, PATIENCE_S, Customer
from tests.grid.notebook import browser, example, log_in, plot, take_picture
from tests.grid.support import cold
from tests.waiting import until
from tests.web.local_web import lasting_port

pytestmark = [pytest.mark.deep, pytest.mark.timeout(3600)]


@contextmanager
def opened(customer: Customer, job_id: int, port: int, folder: Path) -> Iterator[Path]:
    """Run `dps job open` at once after the submission. Yields the file that gets the address for the browser."""
    address, program = folder / "address", folder / "browser"
    program.write_text(f'#!/bin/sh\necho "$1" >{address}.new && mv {address}.new {address}\n')
    program.chmod(0o755)
    environment = os.environ | {"BROWSER": str(program), "HOME": str(customer.home)}
    environment |= {"DEEPGRID_BOOK": str(customer.grid.book), "DPS_KEY_FILE": str(customer.grid.keys.file("customer"))}
    with subprocess.Popen([DPS, "job", "open", str(job_id), str(port)], env=environment) as process:
        try:
            yield address
        finally:
            process.terminate()


async def test_a_plot_is_made_in_jupyter_opened_from_dps(customer: Customer, tmp_path: Path) -> None:
    """The page, its token and the kernel's WebSocket work through the forwarded port."""
    port = lasting_port()
    job_id = customer.submit(example("jupyter", 8888, port))
    with opened(customer, job_id, port, tmp_path) as address:
        await until(address.exists, within_s=PATIENCE_S)
        [token] = set(re.findall(r"token=(\w+)", customer.dps("job", "logs", str(job_id)).stdout))
        async with browser() as page:
            await page.goto(address.read_text().strip())
            await page.locator("#login_submit").wait_for()
            await take_picture(page, "jupyter-token")
            await log_in(page, token)
            _sees_a_plot(await plot(page))
            await take_picture(page, "jupyter-plot")
    customer.dps("job", "cancel", str(job_id))
    await customer.until(job_id, cold)


async def test_tensorboard_shows_what_the_training_writes(customer: Customer, tmp_path: Path) -> None:
    port = lasting_port()
    job_id = customer.submit(example("tensorboard", 6006, port))
    with opened(customer, job_id, port, tmp_path) as address:
        await until(address.exists, within_s=PATIENCE_S)
        async with browser() as page:
            await page.goto(address.read_text().strip())
            await page.get_by_text("loss").first.wait_for()
            await page.get_by_text("first").first.wait_for()
            await page.locator("scalar-card line-chart").first.wait_for()
            await take_picture(page, "tensorboard")
    customer.dps("job", "cancel", str(job_id))
    await customer.until(job_id, cold)


def _sees_a_plot(picture: bytes) -> None:
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    assert image.width > 200 and image.height > 200
    assert len(image.getcolors(2**20) or ()) > 10
