"""A job with spending authority outlives its limit slice by slice, and ends when the allowance does."""

from __future__ import annotations

import time

import pytest

from deepgrid.lifecycle.states import JobStatus
from tests.grid.conftest import PATIENCE_S, Customer
from tests.grid.hands import acting, constants
from tests.grid.runs import run_now, unscheduled
from tests.grid.test_job_life import cold, steps

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

CREDIT = 10**18
FLOW = "auto_top_up/grid"
SLICES = 2
# Ten minutes of work on four GPUs of beta, of which 100 credits pay for one.
LONG_WORK = steps("sleep 600").replace("gpus: 0", "gpus: 4").replace("tasks: 1", "tasks: 2")


async def test_a_job_outlives_its_slices_and_ends_with_the_allowance(customer: Customer) -> None:
    grid = customer.grid
    async with constants(grid, top_up_slice=1), unscheduled(grid, FLOW), acting(grid, "customer") as purse:
        await purse.approve(1000 * CREDIT)
        try:
            job_id = customer.submit(LONG_WORK, "--delegate-spending")
            job = await customer.until(job_id, lambda job: job.status is JobStatus.RUNNING)
            assert job.granted_minutes == 1
            await purse.approve(SLICES * job.rate_wei_per_minute)
            said = await _top_up_while_paid(customer)
            assert said.count(f"Job {job_id} got 1 min.") == SLICES
            assert await purse.chain.allowance(purse.address) == 0
        finally:
            await purse.approve(0)
        job = await customer.until(job_id, cold)
    assert (job.status, job.granted_minutes) == (JobStatus.OUT_OF_CREDITS, 1 + SLICES)
    settled = await customer.settlement(job_id)
    assert settled.billed_minutes == 1 + SLICES
    told = customer.dps("job", "get", str(job_id), check=0).stdout
    assert told.count(f"the allowance is used up: the job ends at its limit of {1 + SLICES} min") == 1


async def _top_up_while_paid(customer: Customer) -> list[str]:
    """Run the flow until it says that the job cannot pay; what it said each time."""
    said: list[str] = []
    deadline = time.monotonic() + PATIENCE_S
    while not said or "cannot pay" not in said[-1]:
        run = await run_now(customer.grid, FLOW, operator="grid")
        assert run["state"]["type"] == "COMPLETED", run["state"]
        said.append(run["state"]["message"])
        assert time.monotonic() < deadline, said
    return said
