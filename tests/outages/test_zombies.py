"""Lost jobs are refunded and jobs that ended are settled. A Slurm that does not answer proves nothing."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from deepgrid.chain.book import AddressBook
from deepgrid.lifecycle.decide import LOST
from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.lifecycle.minutes import started_minutes
from deepgrid.lifecycle.states import JobStatus
from deepgrid.slurm.commands.completions import Completions
from deployments.onemachine.grid import LocalGrid
from flows.collect_zombies import collect_zombies
from tests.grid.customer import PATIENCE_S, Customer
from tests.grid.runs import FINAL, Json, api, run_now, run_until, runs_of, unscheduled
from tests.grid.support import cold, in_slurm, steps
from tests.slurm.losing import lose

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(autouse=True)
async def collected_by_hand(customer: Customer) -> AsyncIterator[None]:
    """Only the tests start collections."""
    async with unscheduled(customer.grid, "collect_zombies/alpha", "collect_zombies/beta"):
        yield


@pytest.fixture
def leave() -> Iterator[Path]:
    """A file that jobs wait for. After the test it always exists."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        file = Path(folder) / "leave"
        yield file
        file.touch()


async def running(customer: Customer, cluster: str, leave: Path) -> Job:
    """Submit a job that runs on this cluster until the file exists."""
    wait = steps(f"until [ -e {leave} ] || [ ! -e {leave.parent} ]; do sleep 0.2; done")
    job_id = customer.submit(wait, f"name={cluster}")
    return await customer.until(job_id, lambda job: job.status is JobStatus.RUNNING)


def key_of(grid: LocalGrid, job: Job) -> JobKey:
    book = AddressBook.load(grid.book)
    return JobKey(book.chain_id, book.meta_scheduler, job.id, job.claimed_at)


async def refunded(customer: Customer, job_id: int) -> None:
    """Check that all credits were returned and that the customer can read why."""
    job = await customer.until(job_id, cold)
    assert (job.status, job.final_cost_wei, job.last_error) == (JobStatus.PANICKED, 0, LOST)
    assert (await customer.settlement(job_id)).refunded_wei == job.locked_wei
    assert LOST in customer.dps("job", "get", str(job_id), check=0).stdout


@pytest.mark.usefixtures("prefect_api")
async def test_without_a_supervisor_lost_jobs_are_refunded_and_ended_ones_settled(
    customer: Customer, leave: Path
) -> None:
    grid = customer.grid
    ending = await running(customer, "alpha", leave)
    lost = await running(customer, "alpha", leave.with_name("never"))
    grid.table.stop("supervisor-alpha")
    try:
        lose(grid.slurm, "alpha", key_of(grid, lost))
        leave.touch()
        await until_gone(customer, ending.id)
        state = await collect_zombies("alpha", grace_s=5, return_state=True)
    finally:
        await asyncio.to_thread(grid.start, "supervisor-alpha")
    assert f"settled 2 jobs ({ending.id}, {lost.id})" in (state.message or "").lower()
    await refunded(customer, lost.id)
    assert (await customer.job(ending.id)).status is JobStatus.FINISHED
    assert (await customer.settlement(ending.id)).billed_minutes == recorded_minutes(grid, ending)


async def until_gone(customer: Customer, job_id: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while left := in_slurm(customer, job_id):
        assert time.monotonic() < deadline, left
        await asyncio.sleep(0.3)


def recorded_minutes(grid: LocalGrid, job: Job) -> int:
    """Return the started minutes between the start and end that the cluster recorded."""
    record = Path(grid.slurm.login("alpha").grid_root) / "jobs" / key_of(grid, job).folder / "record"
    (row,) = Completions.parse(record.read_text())
    assert row.started_at is not None
    assert row.ended_at is not None
    return started_minutes(row.started_at, row.ended_at)


@pytest.mark.deep
async def test_the_deployment_refunds_a_lost_job_and_collects_nothing_while_slurm_is_silent(
    customer: Customer, leave: Path
) -> None:
    """A job is lost on beta while the controller of alpha is down. Both happen at once, because each takes a while."""
    grid = customer.grid
    lost, spared = await running(customer, "beta", leave), await running(customer, "alpha", leave)
    grid.table.stop("alpha-slurmctld")
    try:
        silence, collection = await asyncio.gather(
            run_now(grid, "collect_zombies/alpha", grace_s=5), _lose_and_collect(customer, lost)
        )
        assert silence["state"]["type"] == "FAILED"
        assert "Slurm does not answer" in silence["state"]["message"]
        assert (await customer.job(spared.id)).status is JobStatus.RUNNING
    finally:
        await asyncio.to_thread(grid.start, "slurm")
    assert collection["state"]["type"] == "COMPLETED", collection["state"]
    await refunded(customer, lost.id)
    leave.touch()
    assert (await customer.until(spared.id, cold)).status is JobStatus.FINISHED
    calm = await run_now(grid, "collect_zombies/beta")
    assert "No zombie among" in calm["state"]["message"]


async def _lose_and_collect(customer: Customer, job: Job) -> Json:
    """Stop the job's run in Prefect, remove the job from Slurm, and collect zombies."""
    grid = customer.grid
    carrying = [run for run in await runs_of(grid, "run_job/beta") if run["parameters"]["job_id"] == job.id]
    async with api(grid) as client:
        cancelling = {"state": {"type": "CANCELLING", "name": "Cancelling"}}
        (await client.post(f"flow_runs/{carrying[0]['id']}/set_state", json=cancelling)).raise_for_status()
    await run_until(grid, carrying[0]["id"], lambda run: run["state"]["type"] in FINAL)
    await asyncio.to_thread(lose, grid.slurm, "beta", key_of(grid, job))
    deadline = time.monotonic() + PATIENCE_S
    while True:  # an empty queue that had jobs until a minute ago proves nothing
        collection = await run_now(grid, "collect_zombies/beta", grace_s=5)
        if "No zombie among" not in collection["state"]["message"] or time.monotonic() > deadline:
            return collection
        await asyncio.sleep(5)
