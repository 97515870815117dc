"""While Prefect is down, jobs are carried, ended and paid without it. Later their runs show this."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from deepgrid.lifecycle.states import JobStatus
from deployments.onemachine.clusters import OFFERS
from deployments.onemachine.grid import LocalGrid
from tests.grid.customer import PATIENCE_S, Customer
from tests.grid.gates import Gate
from tests.grid.runs import Json, api, runs_of
from tests.grid.support import cold, steps
from tests.grid.writers import writer_of
from tests.outages.prefect_outages import WAYS, prefect_away

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

TAKEN_OVER = "continuing the runs of"
OFFER = OFFERS[0]
CLUSTER, ON_CLUSTER, SUPERVISOR = OFFER.name, f"name={OFFER.name}", f"supervisor-{OFFER.name}"
UNENDED = ("SCHEDULED", "PENDING", "RUNNING", "CANCELLING")


@pytest.fixture(autouse=True)
async def supervised(grid: LocalGrid) -> AsyncIterator[None]:
    """The supervisor runs again for the next test."""
    yield
    await asyncio.to_thread(grid.start, SUPERVISOR)


@pytest.mark.parametrize("way", [WAYS[0], *(pytest.param(way, marks=pytest.mark.deep) for way in WAYS[1:])])
async def test_jobs_end_and_are_paid_while_prefect_is_down(customer: Customer, way: str) -> None:
    grid, gate = customer.grid, Gate(customer.grid)
    long, orphan = (customer.submit(steps(gate.pass_command, "echo carried on"), ON_CLUSTER) for _ in range(2))
    doomed = customer.submit(steps("sleep 600"), ON_CLUSTER)
    for job_id in (long, orphan, doomed):
        await customer.until(job_id, lambda job: job.status is JobStatus.RUNNING)
    granted = (await customer.job(long)).granted_minutes

    async with prefect_away(grid, way):
        customer.dps("job", "cancel", str(doomed), check=0)
        customer.dps("job", "topup", str(long), "100", check=0)
        assert (await customer.until(doomed, cold)).status is JobStatus.CANCELLED
        kill_and_start(grid)
        gate.open()
        for job_id in (long, orphan):
            assert (await customer.until(job_id, cold)).status is JobStatus.FINISHED
        assert (await customer.job(long)).granted_minutes > granted
        for job_id in (long, orphan, doomed):
            assert (await customer.settlement(job_id)).billed_minutes >= 1

    for job_id, words in ((long, "finished"), (orphan, "finished"), (doomed, "cancelled")):
        assert await completed(customer, job_id) == f"The job is {words}."
    await nothing_stays_under_way(customer)


async def test_a_claim_without_a_run_is_carried_and_gets_its_run(customer: Customer) -> None:
    grid = customer.grid
    grid.table.stop(SUPERVISOR)
    job_id = customer.submit(steps("echo carried from the start"), ON_CLUSTER)
    await customer.until(job_id, lambda job: job.status is JobStatus.META_SCHEDULED)
    async with writer_of(grid, CLUSTER) as provider:
        assert [claim.job_id for claim in await provider.claim_next_jobs(50)] == [job_id]

    async with prefect_away(grid, "refusing"):
        grid.table.start(grid.roles.supervisor(OFFER))
        assert (await customer.until(job_id, cold)).status is JobStatus.FINISHED
        assert (await customer.settlement(job_id)).billed_minutes == 1
        assert await runs_named(grid, job_id) == []
        kill_and_start(grid)  # the next supervisor finds a job that is over and has no run in Prefect

    assert await completed(customer, job_id) == "The job is finished."
    assert "carried from the start" in customer.dps("job", "logs", str(job_id), check=0).stdout
    [run] = await runs_named(grid, job_id)
    await propose(grid, run, "SCHEDULED", "AwaitingRetry")  # as the Retry button does
    again = await in_state(customer, job_id, "COMPLETED", run["run_count"] + 1)
    assert again["state"]["message"] == "The job is finished."


@pytest.mark.deep
async def test_a_run_takes_over_from_the_fallback(customer: Customer) -> None:
    grid, gate = customer.grid, Gate(customer.grid)
    job_id = customer.submit(steps(gate.pass_command), ON_CLUSTER)
    await customer.until(job_id, lambda job: job.status is JobStatus.RUNNING)
    taken_over = times_said(grid, TAKEN_OVER)
    async with prefect_away(grid, "refusing"):
        kill_and_start(grid)
        await said(grid, f"job {job_id} is carried without a run")
    deadline = time.monotonic() + PATIENCE_S
    while times_said(grid, TAKEN_OVER) == taken_over:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.5)
    assert (await in_state(customer, job_id, "RUNNING"))["run_count"] == 1  # it never ended
    gate.open()
    assert await completed(customer, job_id) == "The job is finished."
    assert (await customer.settlement(job_id)).billed_minutes >= 1


@pytest.mark.deep
async def test_a_new_supervisor_corrects_runs_that_were_cancelled_or_lag_behind_the_chain(customer: Customer) -> None:
    """Cancelling a run stops its carrier and not the job. A cancelled run said forever that its job continues."""
    grid, gate = customer.grid, Gate(customer.grid)
    job_id, *over = (customer.submit(steps(command), ON_CLUSTER) for command in (gate.pass_command, "true", "true"))
    await customer.until(job_id, lambda job: job.status is JobStatus.RUNNING)
    for one in over:
        await customer.until(one, cold)
    lagging = [await in_state(customer, one, "COMPLETED") for one in over]
    [run] = await runs_named(grid, job_id)
    await propose(grid, run, "CANCELLING", "Cancelling")
    await in_state(customer, job_id, "CANCELLED")
    assert (await customer.job(job_id)).status is JobStatus.RUNNING
    grid.table.stop(SUPERVISOR)
    for was, state in zip(lagging, ("Crashed", "Cancelled"), strict=True):
        await propose(grid, was, state.upper(), state, force=True)
    await asyncio.to_thread(grid.start, SUPERVISOR)  # it adopts at its start, not after five minutes
    await in_state(customer, job_id, "RUNNING", run_count=2)
    for one, was in zip(over, lagging, strict=True):
        again = await in_state(customer, one, "COMPLETED", was["run_count"] + 1)
        assert again["state"]["message"] == "The job is finished."
    gate.open()
    assert await completed(customer, job_id) == "The job is finished."
    assert (await customer.settlement(job_id)).billed_minutes >= 1


def kill_and_start(grid: LocalGrid) -> None:
    """Kill the supervisor and start it, without waiting until it serves."""
    grid.kill(SUPERVISOR)
    grid.table.start(grid.roles.supervisor(OFFER))


async def runs_named(grid: LocalGrid, job_id: int) -> list[Json]:
    """Return the runs of a job, empty while Prefect is down."""
    wanted = {"flow_runs": {"name": {"like_": f"job {job_id} on "}}}
    async with api(grid) as client:
        try:
            return list((await client.post("flow_runs/filter", json=wanted)).raise_for_status().json())
        except Exception:
            return []


async def propose(grid: LocalGrid, run: Json, state: str, name: str, *, force: bool = False) -> None:
    """Set the state of the run as the UI does, or with `force` as a fault would."""
    async with api(grid) as client:
        wanted = {"state": {"type": state, "name": name}, "force": force}
        answer = (await client.post(f"flow_runs/{run['id']}/set_state", json=wanted)).raise_for_status().json()
    assert answer["status"] == "ACCEPT", answer


async def completed(customer: Customer, job_id: int) -> str:
    """Return the message of the job's only run, once it has completed."""
    return str((await in_state(customer, job_id, "COMPLETED"))["state"]["message"])


async def in_state(customer: Customer, job_id: int, state: str, run_count: int = 0) -> Json:
    """Wait until the job's only run has been in a state of this type for this time, and return the run."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        runs = await runs_named(customer.grid, job_id)
        if runs and runs[0]["state"]["type"] == state and runs[0]["run_count"] >= run_count:
            assert len(runs) == 1
            return runs[0]
        assert time.monotonic() < deadline, f"the run of job {job_id} is not {state}: {runs}"
        await asyncio.sleep(0.5)


async def nothing_stays_under_way(customer: Customer) -> None:
    """Wait until every run of a job has ended."""
    deadline = time.monotonic() + PATIENCE_S
    while runs := await runs_of(customer.grid, f"run_job/{CLUSTER}", *UNENDED):
        assert time.monotonic() < deadline, f"still under way: {runs}"
        await asyncio.sleep(0.5)


def times_said(grid: LocalGrid, words: str) -> int:
    """Return how often the supervisor has logged the text."""
    return grid.table.log_path(SUPERVISOR).read_text().count(words)


async def said(grid: LocalGrid, words: str) -> None:
    """Wait until the supervisor logs the text."""
    deadline = time.monotonic() + PATIENCE_S
    while not times_said(grid, words):
        assert time.monotonic() < deadline, f"nobody says {words!r}"
        await asyncio.sleep(0.5)
