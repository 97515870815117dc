"""A topped-up job outlives its first time limit, with manual or automatic top-ups, even if a process was down.

Two jobs run at the same time. The first and the second test submit them; the last two tests check them.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import time

import pytest
import pytest_asyncio

from deepgrid.chain.node.values import Queues
from deepgrid.lifecycle.states import JobStatus
from deepgrid.slurm.commands.query import limit_minutes
from tests.grid.customer import PATIENCE_S, Customer
from tests.grid.runs import run_now, runs_of, unscheduled
from tests.grid.support import cold, steps
from tests.grid.writers import changed_constants, writer_of

pytestmark = [pytest.mark.deep, pytest.mark.timeout(900)]

FLOW = "top_up_jobs/{}"
ON_ALPHA = "name=alpha"
AUTO = "auto_top_up/grid"
SLICES = 2
ROUND_S = 15
SAVED_MINUTES = 5  # with 300 credits
# One of beta's two whole nodes. 100 credits pay for one minute.
NODE = {"gpus: 0": "gpus: 2", "cpusPerTask: 1": "cpusPerTask: 8", "memPerCpu: 100": "memPerCpu: 1000"}


def on_a_node_of_beta(command: str) -> str:
    """Return a workflow that costs as much as a whole node."""
    workflow = steps(command)
    for one, all_of_it in NODE.items():
        workflow = workflow.replace(one, all_of_it)
    return workflow


def limit_at_slurm(customer: Customer, cluster: str, job_id: int) -> int | None:
    """Return the job's time limit in the cluster's Slurm, in minutes."""
    environment = {**os.environ, **customer.grid.slurm.environment(cluster)}
    argv = ["squeue", "-h", "-a", "-n", f"dg-{job_id}", "-o", "%l"]
    return limit_minutes(subprocess.check_output(argv, env=environment, text=True, timeout=PATIENCE_S).strip())


async def limit_at_slurm_becomes(customer: Customer, cluster: str, job_id: int, minutes: int) -> None:
    """Wait until the job has this time limit in Slurm."""
    deadline = time.monotonic() + PATIENCE_S
    while (limit := limit_at_slurm(customer, cluster, job_id)) != minutes:
        assert time.monotonic() < deadline, f"the limit is still {limit}"
        await asyncio.sleep(0.5)


async def queue_is_emptied(customer: Customer, cluster: str, job_id: int) -> None:
    """Wait until a run has taken the top-up off the queue and has named its job."""
    deadline = time.monotonic() + PATIENCE_S
    async with writer_of(customer.grid, cluster) as provider:
        while await provider.chain.queues(provider.address) != Queues(0, 0, 0):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.5)
    while not re.search(rf"[( ]{job_id}[,)]", said := await _said(customer, cluster)):
        assert time.monotonic() < deadline, said
        await asyncio.sleep(0.5)


async def _said(customer: Customer, cluster: str) -> str:
    """Return the messages of all runs of the cluster."""
    runs = await runs_of(customer.grid, FLOW.format(cluster), "COMPLETED")
    return "\n".join(run["state"]["message"] for run in runs)


def top_up(customer: Customer, job_id: int) -> int:
    """Buy time for 200 credits as a customer. Returns the new limit in minutes, as the command prints it."""
    said = customer.dps("job", "topup", str(job_id), "200", check=0).stdout
    found = re.search(rf"job {job_id} may run for (\d+) minutes in all", said)
    assert found, said
    return int(found[1])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def saved_job(customer: Customer) -> int:
    """A job that is paid for one minute and needs more. It is topped up as soon as it runs, and checked last."""
    job_id = customer.submit(on_a_node_of_beta("sleep 120"))
    await customer.until(job_id, lambda job: job.status is JobStatus.RUNNING)
    assert top_up(customer, job_id) == SAVED_MINUTES
    return job_id


async def test_a_top_up_extends_the_time_limit_in_slurm(customer: Customer, saved_job: int) -> None:
    await limit_at_slurm_becomes(customer, "beta", saved_job, SAVED_MINUTES)
    await queue_is_emptied(customer, "beta", saved_job)
    assert (await customer.job(saved_job)).pending_top_up_wei == 0


@pytest.fixture(scope="module")
def sliced_job(customer: Customer, saved_job: int) -> int:
    """A job that is paid for one minute and may be topped up by the grid. It is submitted second and checked last."""
    return customer.submit(on_a_node_of_beta("sleep 600"), delegate_spending=True)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sliced(customer: Customer, sliced_job: int) -> list[str]:
    """What each run says while it buys slices for the job, and once more when the allowance is used up."""
    grid = customer.grid
    async with changed_constants(grid, top_up_slice=1), unscheduled(grid, AUTO), writer_of(grid, "customer") as purse:
        job = await customer.until(sliced_job, lambda job: job.status is JobStatus.RUNNING)
        assert job.granted_minutes == 1
        try:
            await purse.set_spending_limit(sliced_job, 2 * SLICES * job.rate_wei_per_minute)
            await purse.approve(SLICES * job.rate_wei_per_minute)
            said = await _top_up_while_paid(customer)
            assert await purse.chain.allowance(purse.address) == 0
            again = await run_now(grid, AUTO, operator="grid")
            return [*said, again["state"]["message"]]
        finally:
            await purse.approve(0)


async def test_a_job_gets_slices_while_its_allowance_lasts(
    customer: Customer, sliced_job: int, sliced: list[str]
) -> None:
    assert sliced.count(f"Bought time for 1 job ({sliced_job}).") == SLICES
    assert sliced[-1] == f"Bought no time for 1 job ({sliced_job})."
    told = customer.dps("job", "get", str(sliced_job), check=0).stdout
    assert told.count(f"the allowance is used up: the job ends at its limit of {1 + SLICES} min") == 1


async def _top_up_while_paid(customer: Customer) -> list[str]:
    """Run the flow until it reports that the job cannot pay. Returns the message of each run."""
    said: list[str] = []
    deadline = time.monotonic() + 60 * SLICES + PATIENCE_S
    while not said or "no time" not in said[-1]:
        await asyncio.sleep(ROUND_S if said else 0)
        run = await run_now(customer.grid, AUTO, operator="grid")
        assert run["state"]["type"] == "COMPLETED", run["state"]
        said.append(run["state"]["message"])
        assert time.monotonic() < deadline, said
    return said


async def test_a_top_up_made_while_the_supervisor_is_down_takes_effect_when_it_starts(
    customer: Customer, saved_job: int
) -> None:
    job_id = customer.submit(steps("sleep 600"), ON_ALPHA)
    job = await customer.until(job_id, lambda job: job.status is JobStatus.RUNNING)
    customer.grid.kill("supervisor-alpha")
    try:
        limit = top_up(customer, job_id)
        assert limit > job.granted_minutes
    finally:
        await asyncio.to_thread(customer.grid.start, "supervisor-alpha")
    await limit_at_slurm_becomes(customer, "alpha", job_id, limit)
    await queue_is_emptied(customer, "alpha", job_id)
    customer.dps("job", "cancel", str(job_id), check=0)
    assert (await customer.until(job_id, cold)).status is JobStatus.CANCELLED
    await customer.settlement(job_id)


async def test_a_run_without_top_ups_says_so(customer: Customer) -> None:
    flow = FLOW.format("alpha")
    async with unscheduled(customer.grid, flow):
        run = await run_now(customer.grid, flow)
    assert (run["name"], run["state"]["type"]) == ("top up jobs on alpha", "COMPLETED")
    assert run["state"]["message"] == "Nothing to top up."


async def test_the_topped_up_job_outlived_its_first_limit(customer: Customer, saved_job: int) -> None:
    job = await customer.until(saved_job, cold)
    assert job.status is JobStatus.FINISHED
    assert (await customer.settlement(saved_job)).billed_minutes in (2, 3)


@pytest.mark.usefixtures("sliced")
async def test_the_job_with_slices_ends_when_its_allowance_is_used_up(customer: Customer, sliced_job: int) -> None:
    job = await customer.until(sliced_job, cold)
    assert (job.status, job.granted_minutes) == (JobStatus.OUT_OF_CREDITS, 1 + SLICES)
    settled = await customer.settlement(sliced_job)
    assert settled.billed_minutes == 1 + SLICES
