"""Several Prefect servers work like a single one, even while one of them is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

import httpx
import pytest

from deepgrid.errors import ConfigurationError
from deepgrid.lifecycle.states import JobStatus
from deployments.onemachine.daemons.probes import answers
from deployments.onemachine.grid import LocalGrid
from deployments.scaled.grid import ScaledGrid
from tests.grid.customer import PATIENCE_S, SCALED, Customer
from tests.grid.gates import Gate
from tests.grid.runs import FINAL, api, run_now, run_until
from tests.grid.support import cold, in_slurm, steps
from tests.onemachine.support import REPOSITORY
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(900)

JOBS = 4
REQUESTS = 20
SERVER = "prefect-api-1"
ON_THE_GRID = (
    "test_job_life",
    "test_retry_in_ui",
    "test_run_triggers",
    "test_cancelling",
)


async def run_of(customer: Customer, job_id: int) -> str:
    """Return the final state of the job's flow run."""
    wanted = {"flow_runs": {"name": {"like_": f"job {job_id} on "}}}
    async with asyncio.timeout(PATIENCE_S):
        while True:
            async with api(customer.grid) as client:
                found = (await client.post("flow_runs/filter", json=wanted)).raise_for_status().json()
            if found:
                run = await run_until(customer.grid, found[0]["id"], lambda run: run["state"]["type"] in FINAL)
                return str(run["state"]["type"])
            await asyncio.sleep(0.5)


@pytest.mark.long
async def test_jobs_end_right_while_a_server_is_killed_and_started_again(customer: Customer, grid: ScaledGrid) -> None:
    gate = Gate(grid)
    running = [customer.submit(steps(gate.pass_command)) for _ in range(2)]
    for job_id in running:
        await customer.until(job_id, lambda job: job.status is JobStatus.RUNNING)
    load = [asyncio.create_task(asyncio.to_thread(customer.submit, steps("true"))) for _ in range(JOBS)]
    first = await load[0]
    await asyncio.to_thread(grid.kill, SERVER)
    cancelled = running[0]
    await asyncio.to_thread(customer.dps, "job", "cancel", str(cancelled), check=0)
    assert (await customer.until(cancelled, cold)).status is JobStatus.CANCELLED
    gate.open()
    short = [first, *(await asyncio.gather(*load[1:]))]
    for job_id in [running[1], *short]:
        assert (await customer.until(job_id, cold)).status is JobStatus.FINISHED
        await customer.settlement(job_id)
    assert not grid.is_up(), "the killed server was missed"
    assert {await run_of(customer, job_id) for job_id in [cancelled, running[1], *short]} == {"COMPLETED"}
    assert not [job_id for job_id in running if in_slurm(customer, job_id)]
    await asyncio.to_thread(grid.start, "prefect")
    assert grid.is_up()
    assert all(answers(port, "/api/health") for port in grid.prefect.api_ports.values())


@pytest.mark.long
async def test_a_server_that_hangs_delays_some_requests_and_fails_none(grid: ScaledGrid) -> None:
    """It still accepts connections. The proxy waits for 40 s at most, then asks the other server."""
    hanging = grid.table.pid(SERVER)
    assert hanging is not None
    os.kill(hanging, signal.SIGSTOP)
    try:
        async with api(grid) as client:
            client.timeout = PATIENCE_S
            for _ in range(3):
                asked = await asyncio.gather(*(client.get("health") for _ in range(REQUESTS)))
                assert {answer.status_code for answer in asked} == {httpx.codes.OK}
    finally:
        os.kill(hanging, signal.SIGCONT)
    await asyncio.to_thread(until_both_answer, grid)


def until_both_answer(grid: ScaledGrid) -> None:
    wait_until(lambda: all(answers(port, "/api/health") for port in grid.prefect.api_ports.values()))


@pytest.mark.long
async def test_a_run_by_hand_is_scheduled_and_ends(grid: ScaledGrid) -> None:
    """The run is created like by the Run button. Background services, Redis and the worker take part."""
    done = await run_now(grid, "expire_claims/grid", operator="grid")
    assert done["state"]["type"] == "COMPLETED", done["state"]


@pytest.mark.long
def test_each_kind_of_grid_refuses_to_start_over_the_other(grid: ScaledGrid) -> None:
    with pytest.raises(ConfigurationError, match="several Prefect servers"):
        LocalGrid(grid.state).up(lambda *_: None)


@pytest.mark.long
def test_passwords_stay_out_of_arguments_and_logs(grid: ScaledGrid) -> None:
    secrets = [grid.prefect.login(), grid.prefect.redis.url(0), (grid.state / "redis" / "password").read_text()]
    shown = subprocess.run(["ps", "-eo", "args", "-ww"], capture_output=True, text=True, check=True).stdout
    logs = "".join(file.read_text(errors="replace") for file in grid.table.log_dir.iterdir())
    assert not [secret for secret in secrets if secret in shown or secret in logs]
    private = [*(file for file in (grid.state / "redis").glob("*") if file.is_file()), grid.prefect.home / "proxy"]
    assert not [path for path in private if path.stat().st_mode & 0o077]


@pytest.mark.deep
@pytest.mark.timeout(3600)
def test_tests_of_the_whole_grid_pass_on_it() -> None:
    """The tests share a separate grid."""
    files = [str(REPOSITORY / "tests" / "grid" / f"{name}.py") for name in ON_THE_GRID]
    argv = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "long or not long", "-p", "no:cacheprovider", *files]
    done = subprocess.run(
        argv, env={**os.environ, SCALED: "1"}, cwd=REPOSITORY, capture_output=True, text=True, timeout=3500, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
