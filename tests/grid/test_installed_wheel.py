"""A customer who installed the wheel submits a job to a running grid, without the checkout and within a time budget."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from deepgrid.lifecycle.states import JobStatus
from tests.grid.customer import Customer
from tests.wheel.support import REPOSITORY, Installation
from tests.wheel.support import installation as installation

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

HELP_CPU_S, LIST_CPU_S = 0.3, 0.8  # on an idle machine
ROOM = 6  # for slow processors with shared caches


@pytest.fixture
def environment(customer: Customer, tmp_path: Path) -> dict[str, str]:
    """The variables with which a customer finds the grid and the key."""
    key, book = customer.grid.keys.file("customer"), customer.grid.book
    return {"DPS_KEY_FILE": str(key), "DEEPGRID_BOOK": str(book), "HOME": str(tmp_path)}


async def test_the_installed_dps_submits_a_job_and_waits_for_its_end(
    installation: Installation, customer: Customer, environment: dict[str, str]
) -> None:
    where = installation.run("python", "-c", "import deepgrid; print(deepgrid.__file__)", **environment)
    assert Path(where.stdout.strip()).is_relative_to(installation.site)
    shutil.copy(REPOSITORY / "examples" / "hello-world.yaml", installation.folder)
    done = installation.run(
        "dps", "submit", "hello-world.yaml", "--credits", "100", "--watch", "--exit-on-job-exit", **environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"job (\d+) submitted", done.stdout)
    assert found is not None, done.stdout
    job = await customer.job(int(found[1]))
    assert (job.status, job.exit_status) == (JobStatus.FINISHED, 0)
    assert "FINISHED" in done.stdout
    assert "Hello world" in installation.run("dps", "job", "logs", found[1], **environment).stdout
    await customer.settlement(job.id)


def test_help_and_the_list_of_jobs_take_little_processor_time(
    installation: Installation, environment: dict[str, str]
) -> None:
    helping, listing = installation.cpu_s("dps", "--help"), installation.cpu_s("dps", "job", "list", **environment)
    print(
        f"\ninstalled: {installation.summary}; processor time, best of three:"
        f" dps --help {helping:.2f} s, dps job list {listing:.2f} s"
    )
    assert helping < ROOM * HELP_CPU_S
    assert listing < ROOM * LIST_CPU_S
