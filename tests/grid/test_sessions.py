"""Into a running job of the real grid: a command, a port, and the end of the job."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import async_playwright

from deepgrid import AsyncGrid, ServiceError
from deepgrid.chain.book import AddressBook
from deepgrid.lifecycle.states import JobStatus
from tests.grid.customer import Customer
from tests.grid.support import steps
from tests.web.live.stage import CHROMIUM
from tests.web.local_web import local_web

pytestmark = pytest.mark.long

MPI = "from mpi4py import MPI; world = MPI.COMM_WORLD; print(world.size, world.allreduce(world.rank))"
SERVER = "echo hello from the job > index.html; exec python3 -m http.server 18431 --bind 127.0.0.1"


async def test_a_customer_gets_into_a_running_job_and_no_other_one_does(customer: Customer, tmp_path: Path) -> None:
    job_id = customer.submit(steps(SERVER).replace("tasks: 1", "tasks: 4"))
    await customer.until(job_id, lambda job: job.status is JobStatus.RUNNING)
    command = ("until curl -s 127.0.0.1:18431; do sleep 0.2; done; echo $SLURM_JOB_ID >&2; exit 7",)
    done = customer.dps("job", "exec", str(job_id), "--", "sh", "-c", *command)
    assert (done.returncode, done.stdout) == (7, "hello from the job\n"), done.stderr
    assert done.stderr.strip().isdigit()

    ranks = customer.dps(
        "job", "exec", str(job_id), "--", "srun", "--mpi=pmix_v4", "/usr/bin/python3", "-c", MPI, check=0
    )
    assert ranks.stdout.splitlines() == 4 * ["4 6"]

    await _open_in_browser(customer, job_id, tmp_path)
    async with AsyncGrid(customer.grid.keys.file("customer"), customer.grid.book) as grid:
        job = await grid.job(job_id)
        async with await job.forward(18431) as forwarded:
            reader, writer = await asyncio.open_connection("127.0.0.1", forwarded.port)
            writer.write(b"GET / HTTP/1.0\r\n\r\n")
            assert (await reader.read()).endswith(b"hello from the job\n")
            writer.close()
            await job.cancel()
            with pytest.raises(ServiceError, match="The session ended"):
                await asyncio.wait_for(forwarded.wait(), 300)

    denied = customer.dps("job", "exec", str(job_id), "--key", str(customer.grid.keys.file("operator")), "--", "id")
    assert denied.returncode != 0


async def _open_in_browser(customer: Customer, job_id: int, folder: Path) -> None:
    """Open the job's page of HTML by the button in `dps web`."""
    with local_web(AddressBook.load(customer.grid.book), customer.grid.keys.file("customer"), folder) as web:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = await browser.new_page()
            page.set_default_timeout(120_000)
            await page.goto(web.address())
            await page.get_by_text("credits").first.wait_for()
            await page.evaluate(f"location.hash = '#/jobs/{job_id}'")
            await page.get_by_role("tab", name="Connect").click()
            await page.get_by_text(f"dps job shell {job_id}").wait_for()
            await page.get_by_label("Port in the job").fill("18431")
            await page.get_by_role("button", name="Open").click()
            async with page.context.expect_page() as coming:
                await page.get_by_role("link", name="http://127.0.0.1:").click()
            assert "hello from the job" in await (await coming.value).content()
            await browser.close()
