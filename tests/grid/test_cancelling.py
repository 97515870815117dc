"""A job can be cancelled in any state. Its final state and bill are correct, and nothing is left in Slurm."""

from __future__ import annotations

import asyncio
import base64
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from deepgrid.chain.node.values import Queues, TrackRecord
from deepgrid.errors import ContractError
from deepgrid.lifecycle.states import JobStatus
from deployments.onemachine.grid import LocalGrid
from tests.attacks.saboteur import LOOP, PROGRAMS
from tests.grid.customer import PATIENCE_S, Customer
from tests.grid.runs import run_now, unscheduled
from tests.grid.support import busy_nodes, cold, in_slurm, steps
from tests.grid.writers import writer_of

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

ON_ALPHA = "name=alpha"
LONG_WORK = steps("sleep 600")


async def in_slurm_becomes(customer: Customer, job_id: int, reached: Callable[[str], bool]) -> None:
    """Wait until `wanted` is true for the job's lines in the queues."""
    deadline = time.monotonic() + PATIENCE_S
    while not reached(shown := in_slurm(customer, job_id)):
        assert time.monotonic() < deadline, shown
        await asyncio.sleep(0.5)


def gone(shown: str) -> bool:
    return not shown


async def cancelled_for_nothing(customer: Customer, job_id: int) -> None:
    """Check that the job is cancelled, all its credits were returned, and Slurm has no trace of it."""
    job = await customer.until(job_id, cold)
    assert job.status is JobStatus.CANCELLED
    settled = await customer.settlement(job_id)
    assert (settled.billed_minutes, settled.refunded_wei) == (0, job.locked_wei)
    await in_slurm_becomes(customer, job_id, gone)


async def test_a_pending_job_is_cancelled(customer: Customer) -> None:
    job_id = customer.submit(LONG_WORK, "name=nowhere")
    customer.dps("job", "cancel", str(job_id), check=0)
    await cancelled_for_nothing(customer, job_id)


async def test_a_meta_scheduled_job_is_cancelled(customer: Customer) -> None:
    async with unscheduled(customer.grid, "claim_jobs/alpha"):
        job_id = customer.submit(LONG_WORK, ON_ALPHA)
        await customer.until(job_id, lambda job: job.status is JobStatus.META_SCHEDULED)
        customer.dps("job", "cancel", str(job_id), check=0)
    await cancelled_for_nothing(customer, job_id)


async def test_a_job_that_waits_in_slurm_is_cancelled(customer: Customer) -> None:
    async with busy_nodes(customer.grid, "alpha"):
        job_id = customer.submit(LONG_WORK, ON_ALPHA)
        await in_slurm_becomes(customer, job_id, lambda shown: "PENDING" in shown)
        assert (await customer.job(job_id)).status is JobStatus.SCHEDULED
        customer.dps("job", "cancel", str(job_id), check=0)
        await cancelled_for_nothing(customer, job_id)


async def test_a_running_job_is_cancelled(customer: Customer) -> None:
    job_id = customer.submit(LONG_WORK, ON_ALPHA)
    await customer.until(job_id, lambda job: job.status is JobStatus.RUNNING)
    customer.dps("job", "cancel", str(job_id), check=0)
    job = await customer.until(job_id, cold)
    assert job.status is JobStatus.CANCELLED
    async with writer_of(customer.grid, "alpha") as alpha:
        fee_minutes = (await alpha.chain.constants()).cancellation_fee_minutes
        assert await alpha.chain.queues(alpha.address) == Queues(0, 0, 0)
    assert (await customer.settlement(job_id)).billed_minutes == fee_minutes
    await in_slurm_becomes(customer, job_id, gone)


async def test_a_job_that_stops_all_processes_of_its_account_is_cancelled_and_pays(customer: Customer) -> None:
    """A loop in the job once kept the supervisor from cancelling it for ten minutes, and the job cost nothing."""
    before = await _track_record(customer.grid)
    stops = f"import base64; exec(base64.b64decode('{base64.b64encode(LOOP.encode()).decode()}'))"
    job_id = customer.submit(steps(f'python3 -c "{stops}" {int(signal.SIGSTOP)} {" ".join(PROGRAMS)}'), ON_ALPHA)
    await customer.until(job_id, lambda job: job.status is JobStatus.RUNNING)
    customer.dps("job", "cancel", str(job_id), check=0)
    job = await customer.until(job_id, cold)
    assert job.status is JobStatus.CANCELLED
    assert job.ended_at - job.cancel_requested_at <= 60, "the promise; it takes some seconds"
    assert "ready" in customer.dps("job", "logs", str(job_id), check=0).stdout, "the loop ran"
    async with writer_of(customer.grid, "alpha") as alpha:
        fee_minutes = (await alpha.chain.constants()).cancellation_fee_minutes
    assert (await customer.settlement(job_id)).billed_minutes == fee_minutes
    await in_slurm_becomes(customer, job_id, gone)
    record = await _track_record(customer.grid)
    assert replace(record, started=before.started) == before, "no fault is counted"


async def _track_record(grid: LocalGrid) -> TrackRecord:
    async with writer_of(grid, "alpha") as alpha:
        return await alpha.chain.track_record(alpha.address)


async def test_a_request_in_the_second_of_the_end_has_one_of_two_outcomes(customer: Customer) -> None:
    """The end or the request comes first. The state and the bill both follow the one that came first."""
    job_ids = [customer.submit(steps(f"sleep {seconds}"), ON_ALPHA) for seconds in (1, 2, 3, 4)]
    async with writer_of(customer.grid, "customer") as writer:
        await asyncio.gather(*(_cancel_when_it_runs(customer, writer.cancel_job, job_id) for job_id in job_ids))
        fee_minutes = (await writer.chain.constants()).cancellation_fee_minutes
    for job_id in job_ids:
        job = await customer.until(job_id, cold)
        settled = await customer.settlement(job_id)
        assert (job.status, settled.billed_minutes) in ((JobStatus.FINISHED, 1), (JobStatus.CANCELLED, fee_minutes))
        await in_slurm_becomes(customer, job_id, gone)


async def _cancel_when_it_runs(customer: Customer, cancel: Callable[[int], Awaitable[object]], job_id: int) -> None:
    await customer.until(job_id, lambda job: job.status >= JobStatus.RUNNING)
    try:
        await cancel(job_id)
    except ContractError as error:
        if error.name != "JobHotStatusOnly":  # the end came first
            raise


async def test_a_run_without_cancel_requests_says_so(customer: Customer) -> None:
    flow = "cancel_jobs/alpha"
    async with unscheduled(customer.grid, flow):
        run = await run_now(customer.grid, flow)
    assert (run["name"], run["state"]["type"]) == ("cancel jobs on alpha", "COMPLETED")
    assert run["state"]["message"] == "Nothing to cancel."
