"""What Prefect shows of each fault in the table of the provider's guide, and that the work continues after the repair.

Where a run fails, its Retry button is pressed. Where a run waits, it continues by itself, and Retry changes nothing.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from deepgrid.lifecycle.states import JobStatus
from deployments.onemachine.clusters import OFFERS
from deployments.onemachine.grid import LocalGrid
from tests.grid.customer import PATIENCE_S, Customer
from tests.grid.gates import Gate
from tests.grid.runs import FINAL, Json, api, run_now, run_now_until, run_until, runs_of
from tests.grid.support import busy_nodes, cold, steps
from tests.outages.desk_faults import (
    CLUSTER,
    NO_CHAIN,
    NO_CONTROLLER,
    NO_LOGIN,
    NO_PROGRAM,
    OUT_OF_GAS,
    WRONG_BLOCK,
    Fault,
    drained_nodes,
    pressed_retry,
    stopped,
)

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "provider.md"
ON_CLUSTER = f"name={CLUSTER}"


def cells_of(row: str) -> list[str]:
    """Return the other cells of a row in the guide's table of faults."""
    found = re.search(rf"^\| {re.escape(row)} \| (.*) \|$", GUIDE.read_text(), re.MULTILINE)
    assert found, f"the guide has no row {row!r}"
    return found[1].split(" | ")


@pytest.mark.parametrize(
    "fault",
    [
        WRONG_BLOCK,
        *(pytest.param(one, marks=pytest.mark.deep) for one in (NO_CONTROLLER, NO_CHAIN, NO_PROGRAM)),
    ],
    ids=lambda fault: fault.row,
)
async def test_a_run_fails_with_the_reason_and_succeeds_after_retry(customer: Customer, fault: Fault) -> None:
    grid = customer.grid
    async with fault.during(grid):
        failed = await run_now(grid, fault.deployment, **fault.parameters)
        assert failed["state"]["type"] == "FAILED", failed["state"]
        assert fault.says in failed["state"]["message"]
    shown, button, _ = cells_of(fault.row)
    assert f"`{fault.flow}` is Failed" in shown and "Retry" in button
    again = await pressed_retry(grid, failed)
    assert again["state"]["type"] == "COMPLETED", again["state"]


@pytest.mark.deep
async def test_without_login_node_a_run_fails_or_is_late(customer: Customer) -> None:
    """A run that begins before the supervisor's next heartbeat fails. A later one begins after the repair."""
    grid = customer.grid
    shown, button, then = cells_of(NO_LOGIN.row)
    async with NO_LOGIN.during(grid):
        run = await run_now_until(
            grid, NO_LOGIN.deployment, lambda run: is_final(run) or run["state"]["name"] == "Late"
        )
    if run["state"]["name"] == "Late":
        assert "Later runs of the cluster are Late" in shown and "Late runs start" in then
        again = await run_until(grid, run["id"], is_final)
    else:
        assert (run["state"]["type"], NO_LOGIN.says in run["state"]["message"]) == ("FAILED", True), run["state"]
        assert f"`{NO_LOGIN.flow}` is Failed" in shown and "Retry" in button
        again = await pressed_retry(grid, run)
    assert again["state"]["type"] == "COMPLETED", again["state"]
    done = await pressed_retry(grid, again)
    assert done["state"]["type"] == "COMPLETED", "Retry on a run whose work is done changes nothing"


async def test_a_job_that_was_not_claimed_for_lack_of_gas_is_claimed_after_retry(customer: Customer) -> None:
    grid = customer.grid
    async with OUT_OF_GAS.during(grid):
        job_id = customer.submit(steps("true"), ON_CLUSTER)
        await customer.until(job_id, lambda job: job.status is JobStatus.META_SCHEDULED)
        failed = await run_now(grid, OUT_OF_GAS.deployment)
        assert failed["state"]["type"] == "FAILED", failed["state"]
        assert OUT_OF_GAS.says in failed["state"]["message"]
    shown, button, _ = cells_of(OUT_OF_GAS.row)
    assert f"`{OUT_OF_GAS.flow}` is Failed" in shown and "Retry" in button
    again = await pressed_retry(grid, failed)
    assert again["state"]["type"] == "COMPLETED", again["state"]
    assert (await customer.until(job_id, cold)).status is JobStatus.FINISHED


@pytest.mark.deep
async def test_a_job_waits_for_drained_nodes_and_says_so(customer: Customer) -> None:
    grid = customer.grid
    async with AsyncExitStack() as draining:
        async with busy_nodes(grid, CLUSTER):
            job_id = customer.submit(steps("true"), ON_CLUSTER)
            await said(grid, job_id, "waits in Slurm: ")
            await draining.enter_async_context(drained_nodes(grid))
        run = await said(grid, job_id, "DRAINED")
        assert run["state"]["type"] == "RUNNING"
    assert "waits in Slurm: " in cells_of("all nodes drained")[0]
    await ends_well_and_again(customer, job_id)


@pytest.mark.deep
async def test_a_job_waits_for_the_services_and_says_so(customer: Customer) -> None:
    grid, supervisor = customer.grid, f"supervisor-{CLUSTER}"
    grid.table.stop(supervisor)
    job_id = customer.submit(steps("true"), ON_CLUSTER)
    await customer.until(job_id, lambda job: job.status is JobStatus.META_SCHEDULED)
    async with stopped(grid, "services", "services"):
        grid.table.start(grid.roles.supervisor(next(offer for offer in OFFERS if offer.name == CLUSTER)))
        run = await said(grid, job_id, "observing again: ")
        assert run["state"]["type"] == "RUNNING"
    assert "observing again: " in cells_of("the services are down")[0]
    await ends_well_and_again(customer, job_id)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("process", "step", "row"),
    [("postgres", "postgres", "PostgreSQL is down"), ("prefect-server", "prefect", "Prefect is down")],
)
async def test_a_job_ends_while_prefect_or_its_database_is_down(
    customer: Customer, process: str, step: str, row: str
) -> None:
    grid, gate = customer.grid, Gate(customer.grid)
    job_id = customer.submit(steps(gate.pass_command), ON_CLUSTER)
    await customer.until(job_id, lambda job: job.status is JobStatus.RUNNING)
    async with stopped(grid, process, step):
        assert not await answers(grid)
        gate.open()
        assert (await customer.until(job_id, cold)).status is JobStatus.FINISHED
    assert "by itself" in cells_of(row)[2]
    await ends_well_and_again(customer, job_id)


async def answers(grid: LocalGrid) -> bool:
    """Return whether the API lists flow runs."""
    async with api(grid) as client:
        try:
            return (await client.post("flow_runs/filter", json={"limit": 1})).is_success
        except httpx.HTTPError:
            return False


async def ends_well_and_again(customer: Customer, job_id: int) -> None:
    """Wait until the job and its run have ended. Then Retry ends the same way, and nothing is done twice."""
    assert (await customer.until(job_id, cold)).status is JobStatus.FINISHED
    run = await run_until(customer.grid, (await run_of(customer.grid, job_id))["id"], is_final)
    assert (run["state"]["type"], run["state"]["message"]) == ("COMPLETED", "The job is finished.")
    settled = await customer.settlement(job_id)
    again = await pressed_retry(customer.grid, run)
    assert (again["state"]["type"], again["state"]["message"]) == ("COMPLETED", "The job is finished.")
    assert await customer.settlement(job_id) == settled


def is_final(run: Json) -> bool:
    return run["state"]["type"] in FINAL


async def run_of(grid: LocalGrid, job_id: int) -> Json:
    """Wait for the run of the job, and return it."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            for run in await runs_of(grid, f"run_job/{CLUSTER}"):
                if run["parameters"]["job_id"] == job_id:
                    return run
            await asyncio.sleep(0.5)


async def said(grid: LocalGrid, job_id: int, words: str) -> Json:
    """Wait until the log of the job's run has these words, and return the run."""
    run = await run_of(grid, job_id)
    wanted = {"logs": {"flow_run_id": {"any_": [run["id"]]}}}
    async with asyncio.timeout(PATIENCE_S), api(grid) as client:
        while True:
            lines = (await client.post("logs/filter", json=wanted)).raise_for_status().json()
            if any(words in line["message"] for line in lines):
                return dict((await client.get(f"flow_runs/{run['id']}")).raise_for_status().json())
            await asyncio.sleep(0.5)
