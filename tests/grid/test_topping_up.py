"""A job that is topped up by hand outlives its first limit, whoever was down meanwhile; on the whole grid."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time

import pytest

from deepgrid.chain.client import Queues
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from tests.grid.conftest import PATIENCE_S, Customer
from tests.grid.hands import acting
from tests.grid.runs import run_now, runs_of, unscheduled
from tests.grid.test_job_life import cold, steps

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

FLOW = "top_up_jobs/beta"


def costly(command: str) -> str:
    """A job on four GPUs of beta, of which 100 credits pay for one minute."""
    return steps(command).replace("gpus: 0", "gpus: 4").replace("tasks: 1", "tasks: 2")


def running(job: Job) -> bool:
    return job.status is JobStatus.RUNNING


def limit_at_slurm(customer: Customer, job_id: int) -> str:
    """The time limit that beta's Slurm gives the job, such as `4:00`."""
    environment = {**os.environ, **customer.grid.slurm.environment("beta")}
    argv = ["squeue", "-h", "-a", "-n", f"0x{job_id:064x}", "-o", "%l"]
    return subprocess.check_output(argv, env=environment, text=True, timeout=PATIENCE_S).strip()


async def limit_at_slurm_becomes(customer: Customer, job_id: int, minutes: int) -> None:
    """Wait until Slurm gives the job so much time."""
    deadline = time.monotonic() + PATIENCE_S
    while (limit := limit_at_slurm(customer, job_id)) != f"{minutes}:00":
        assert time.monotonic() < deadline, f"the limit is still {limit}"
        await asyncio.sleep(0.5)


async def top_up(customer: Customer, job_id: int) -> int:
    """Buy 200 credits of time as a customer does; returns the new limit in minutes, which the command names."""
    said = customer.dps("job", "topup", str(job_id), "200", check=0).stdout
    limit_minutes = (await customer.job(job_id)).granted_minutes
    assert f"job {job_id} may run for {limit_minutes} minutes in all" in said
    return limit_minutes


async def queue_is_emptied(customer: Customer, job_id: int) -> None:
    """Wait until a run has taken the top-up off the queue and has said of which job it was."""
    deadline = time.monotonic() + PATIENCE_S
    async with acting(customer.grid, "beta") as beta:
        while await beta.chain.queues(beta.address) != Queues(0, 0, 0):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.5)
    while not any(f"job {job_id}" in said for said in await _messages(customer)):
        assert time.monotonic() < deadline, await _messages(customer)
        await asyncio.sleep(0.5)


async def _messages(customer: Customer) -> list[str]:
    return [str(run["state"]["message"]) for run in await runs_of(customer.grid, FLOW, "COMPLETED")]


async def test_a_job_outlives_its_first_limit(customer: Customer) -> None:
    job_id = customer.submit(costly("sleep 100"))
    job = await customer.until(job_id, running)
    assert job.granted_minutes == 1
    limit_minutes = await top_up(customer, job_id)
    await limit_at_slurm_becomes(customer, job_id, limit_minutes)
    await queue_is_emptied(customer, job_id)
    job = await customer.until(job_id, cold)
    assert (job.status, job.granted_minutes, job.pending_top_up_wei) == (JobStatus.FINISHED, limit_minutes, 0)
    assert (await customer.settlement(job_id)).billed_minutes in (2, 3)


async def test_a_top_up_while_the_supervisor_is_down_counts_from_its_start(customer: Customer) -> None:
    job_id = customer.submit(costly("sleep 600"), credits="300")
    job = await customer.until(job_id, running)
    assert job.granted_minutes == 4
    customer.grid.kill("supervisor-beta")
    try:
        limit_minutes = await top_up(customer, job_id)
        assert limit_minutes > 4
    finally:
        await asyncio.to_thread(customer.grid.start, "supervisor-beta")
    await limit_at_slurm_becomes(customer, job_id, limit_minutes)
    await queue_is_emptied(customer, job_id)
    customer.dps("job", "cancel", str(job_id), check=0)
    job = await customer.until(job_id, cold)
    assert job.status is JobStatus.CANCELLED
    await customer.settlement(job_id)


async def test_a_run_with_nothing_to_do_says_so(customer: Customer) -> None:
    async with unscheduled(customer.grid, FLOW):
        run = await run_now(customer.grid, FLOW)
    assert (run["name"], run["state"]["type"]) == ("top up jobs on beta", "COMPLETED")
    assert run["state"]["message"] == "Nothing to top up."
