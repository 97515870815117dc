"""What an administrator asks about: jobs, a stray Slurm job, measurements, books, reports and an offer of alpha.

Everything is made by the real flows. Only the times of one run and of one measurement are in the past.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import asyncpg

from deepgrid.benchmark import measuring
from deepgrid.benchmark.settings import BenchmarkSettings
from deepgrid.lifecycle.states import JobStatus
from deepgrid.provider.benchmark_archive import BenchmarkArchive
from deployments.onemachine.grid import LocalGrid
from tests.grid.block_changes import changed_block, value_of
from tests.grid.customer import PATIENCE_S, Customer
from tests.grid.prefect_answers import Facts
from tests.grid.runs import Json, api, deployment, run_now, runs_of
from tests.grid.support import cold, steps

ON_ALPHA = "name=alpha"
PROVIDER, PRICE = "deepgrid-provider/alpha", "cpu_wei_per_minute"
REPORT = "WR11C2R4 2176 128 2 2 3.54 {}\n PASSED\n"


async def failed_job(customer: Customer) -> Facts:
    """Run a job that exits with status 7, and wait until its run shows that."""
    job_id = customer.submit(steps("exit 7"), ON_ALPHA)
    job = await customer.until(job_id, cold)
    assert job.status is JobStatus.FAILED
    await _tagged_run(customer.grid, job_id)
    return {"job": str(job_id), "customer": job.customer}


@asynccontextmanager
async def seeded(customer: Customer) -> AsyncIterator[Facts]:
    """Yield names and times of what was made. The offer and the switch of alpha are as before afterwards."""
    grid, now = customer.grid, datetime.now(UTC)
    facts = {**await failed_job(customer), "period": f"since {now:%Y-%m-%d}"}
    facts |= {"yesterday": await _a_run_of_yesterday(customer), "march": _measured_in_march(grid, now)}
    await run_now(grid, "benchmark_cluster/alpha", programs=["machine"])
    facts["next_run"] = await _next_run(grid, "benchmark_cluster/alpha")
    await asyncio.to_thread(_stray_job, grid, await _account(grid, facts["job"]))
    await run_now(grid, "collect_zombies/alpha", grace_s=5)
    await run_now(grid, "reconcile_billing/alpha", since=f"{now:%F %T}")
    await run_now(grid, "report_usage/alpha", since=f"{now:%F}")
    async with _changed_offer(grid), _drained(grid):
        yield facts


async def _tagged_run(grid: LocalGrid, job_id: int | str) -> Json:
    """Wait until the run of the job has its tags and its end, and return it."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            for run in await runs_of(grid, "run_job/alpha", "COMPLETED"):
                if run["parameters"]["job_id"] == int(job_id) and run["tags"]:
                    return run
            await asyncio.sleep(0.5)


async def _account(grid: LocalGrid, job_id: str) -> str:
    """Return the Unix account of the job, as its card shows it."""
    run = await _tagged_run(grid, job_id)
    async with api(grid) as client:
        wanted = {"artifacts": {"flow_run_id": {"any_": [run["id"]]}}}
        (card,) = (await client.post("artifacts/filter", json=wanted)).raise_for_status().json()
    return str(card["data"]).partition('"account", "value": "')[2].partition('"')[0]


async def _a_run_of_yesterday(customer: Customer) -> str:
    """Run a job, and move its run to yesterday. Returns the date as both user interfaces write it."""
    job_id = customer.submit(steps("true"), ON_ALPHA)
    await customer.until(job_id, cold)
    run = await _tagged_run(customer.grid, job_id)
    database = await asyncpg.connect(customer.grid.postgres.url("prefect").replace("+asyncpg", ""))
    try:
        for column in ("start_time", "end_time", "expected_start_time"):
            await database.execute(
                f"UPDATE flow_run SET {column} = {column} - interval '1 day' WHERE id = $1",  # noqa: S608
                run["id"],
            )
    finally:
        await database.close()
    return f"{datetime.fromisoformat(run['start_time']) - timedelta(days=1):%Y/%m/%d}"


def _measured_in_march(grid: LocalGrid, now: datetime) -> str:
    """Keep a result of HPL of the last March. Returns that month."""
    march = datetime(now.year if now.month > 3 else now.year - 1, 3, 15, tzinfo=UTC)
    said = "".join(REPORT.format(12.5 * factor) for factor in (0.99, 1, 1.01))
    archive = BenchmarkArchive(grid.state / "supervisor-alpha" / "benchmarks" / "alpha")
    archive.keep(measuring.read("hpl", said, BenchmarkSettings()), int(march.timestamp()))
    return f"{march:%Y-%m}"


def _stray_job(grid: LocalGrid, account: str) -> None:
    """Let the customer's account have a Slurm job that belongs to no claim."""
    command = ["sbatch", f"--uid={account}", "--chdir=/", "--output=/dev/null", "--mem=100", "--wrap=sleep 900"]
    environment = {**os.environ, **grid.slurm.environment("alpha")}
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=PATIENCE_S)


async def _next_run(grid: LocalGrid, name: str) -> str:
    """Return when the deployment runs next, as both user interfaces write it."""
    times = [run["expected_start_time"] for run in await runs_of(grid, name, "SCHEDULED")]
    return f"{min(map(datetime.fromisoformat, times)):%Y/%m/%d %I:%M:%S %p}"


@asynccontextmanager
async def _changed_offer(grid: LocalGrid) -> AsyncIterator[None]:
    """Propose a higher price of CPUs, and afterwards the old one."""
    higher = int(str(await value_of(grid, PROVIDER, PRICE))) + 10**16
    try:
        async with changed_block(grid, PROVIDER, PRICE, str(higher)):
            await run_now(grid, "register_provider/alpha")
            yield
    finally:
        await run_now(grid, "register_provider/alpha")


@asynccontextmanager
async def _drained(grid: LocalGrid) -> AsyncIterator[None]:
    """Pause the deployment that claims jobs, and wait until the supervisor has said so."""
    found = await deployment(grid, "claim_jobs/alpha")
    path = f"deployments/{found['id']}/schedules/{found['schedules'][0]['id']}"
    async with api(grid) as client:
        (await client.patch(path, json={"active": False})).raise_for_status()
        try:
            async with asyncio.timeout(PATIENCE_S):
                while "is drained" not in str(grid.prefect.variable("deepgrid_claiming_alpha")):
                    await asyncio.sleep(1)
            yield
        finally:
            (await client.patch(path, json={"active": True})).raise_for_status()
