"""Jobs at a steady rate while each process is restarted: none is lost or late, and nothing grows.

The books of operator and providers compare each bill with Slurm's accounting, to the wei.
"""

from __future__ import annotations

import asyncio
import time

import pytest

from deepgrid.billing.period import format_time
from deepgrid.client.order import read_order
from deepgrid.client.session import CustomerSession, CustomerSettings, customer_session
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from tests.grid.customer import Customer
from tests.grid.runs import run_now, unscheduled
from tests.grid.support import steps
from tests.grid.writers import writer_of
from tests.soak.restarts import ENDS_WITHIN_S, ROOM, STEPS, rolling_restart
from tests.soak.stream import Stream
from tests.soak.usage import KIB, Usage, usage

CREDIT_WEI = 10**18
LOCKED_WEI = 5 * CREDIT_WEI
PER_S = 2.0
LATE_S = 30.0
GROWTH = 1.2  # of memory, from the first restart to the end
SMALL_MIB = 15.0  # a process may always take this much more
FILES = 30  # a burst opens connections that pools keep, such as the 20 of Prefect's server to PostgreSQL
IDLE_WITHIN_S = 120.0  # other connections close when they are idle
BYTES_PER_JOB = {"prefect": 200 * KIB, "services": 60 * KIB}  # decision 0096, and a page per small table
ENDED_WITHIN_S = 900.0
BOOKS = ("reconcile_billing/alpha", "reconcile_billing/beta", "reconcile_billing/grid")


@pytest.mark.deep
@pytest.mark.timeout(1800)
async def test_a_short_soak(customer: Customer) -> None:
    """Show most faults in minutes, with one restart of each process."""
    await soak(customer, jobs=120, between=60)


@pytest.mark.deep
@pytest.mark.timeout(3600)
async def test_a_thousand_jobs(customer: Customer) -> None:
    await soak(customer, jobs=1_000, between=500)


@pytest.mark.deep
@pytest.mark.timeout(4 * 3600)
async def test_ten_thousand_jobs(customer: Customer) -> None:
    await soak(customer, jobs=10_000, between=1_200)


async def soak(customer: Customer, jobs: int, between: int) -> None:
    """Submit jobs, with a rolling restart after every `between` of them, and judge all."""
    grid = customer.grid
    file = customer.home / "small.yaml"
    file.write_text(steps("true"))
    settings = CustomerSettings(grid.keys.file("customer"), grid.book)
    async with customer_session(settings) as session, writer_of(grid, "admin") as admin, unscheduled(grid, *BOOKS):
        since = format_time(await session.chain.now())
        await admin.mint(session.address, jobs * LOCKED_WEI)
        await admin.set_constant("setMinimumAmount", LOCKED_WEI)
        await session.writer.approve(jobs * LOCKED_WEI)
        stream = Stream(session, read_order(file, LOCKED_WEI))
        await stream.run(between, PER_S)
        await all_cold(session, stream.ids)  # the jobs under way hold connections
        before = await usage(grid, tuple(STEPS))
        for begun in range(between, jobs, between):
            restarting = asyncio.create_task(asyncio.to_thread(rolling_restart, grid))
            await stream.run(min(between, jobs - begun), PER_S)
            took = await restarting
            print(f"after {begun} jobs, seconds to end: {took}")
            assert {name: s for name, s in took.items() if s > ROOM * ENDS_WITHIN_S} == {}
        ended = await all_cold(session, stream.ids)
        assert len({job.id for job in ended}) == jobs
        after = await idle(customer, before)
        await books_balance(customer, since)
        nothing_grows(before, after, jobs - between)
        in_time(ended, stream.ids[:between])  # last, because it fails when other work slows the machine


async def idle(customer: Customer, before: Usage) -> Usage:
    """Return what the processes take when idle connections are closed, or after a while."""
    deadline = time.monotonic() + IDLE_WITHIN_S
    while True:
        now = await usage(customer.grid, tuple(STEPS))
        if not more_files(before, now) or time.monotonic() > deadline:
            return now
        await asyncio.sleep(1)


def more_files(first: Usage, last: Usage) -> dict[str, tuple[int, int]]:
    """Return the processes with more open files than may come and go, with both numbers."""
    return {n: (f, last.files[n]) for n, f in first.files.items() if last.files[n] > f + FILES}


async def all_cold(session: CustomerSession, ids: list[int]) -> list[Job]:
    """Return the jobs when all have ended."""
    deadline = time.monotonic() + ENDED_WITHIN_S
    found = await session.chain.jobs(ids)
    while hot := [job.id for job in found if job.status.hot]:
        assert time.monotonic() < deadline, hot
        await asyncio.sleep(1)
        found = await session.chain.jobs(ids)
    assert {job.status for job in found} == {JobStatus.FINISHED}
    return found


def in_time(jobs: list[Job], undisturbed: list[int]) -> None:
    """Check that no job waits more than 30 s longer for its start than jobs before the first restart."""
    waits = {job.id: job.started_at - job.submitted_at for job in jobs}
    usual, longest = max(waits[job_id] for job_id in undisturbed), max(waits.values())
    print(f"longest wait for a start: {usual} s before the first restart, {longest} s of all")
    assert longest <= usual + ROOM * LATE_S


def nothing_grows(first: Usage, last: Usage, jobs: int) -> None:
    """Check that memory, open files and databases stay within their bounds while this many jobs run."""
    grown = {name: (last.databases[name] - first.databases[name]) / jobs for name in first.databases}
    print(f"MiB: {first.memory_mib} -> {last.memory_mib}")
    print(f"files: {first.files} -> {last.files}; bytes per job: {grown}")
    assert {n: (m, last.memory_mib[n]) for n, m in first.memory_mib.items()
            if last.memory_mib[n] > max(GROWTH * m, m + SMALL_MIB)} == {}  # fmt: skip
    assert more_files(first, last) == {}
    assert {name: size for name, size in grown.items() if size > BYTES_PER_JOB[name]} == {}


async def books_balance(customer: Customer, since: str) -> None:
    """Check that the books of each provider and of the operator agree with Slurm and the contract."""
    for name in ("alpha", "beta"):
        run = await run_now(customer.grid, f"reconcile_billing/{name}", cluster=name, since=since)
        assert run["state"]["type"] == "COMPLETED", run["state"]["message"]
    run = await run_now(customer.grid, "reconcile_billing/grid", operator="grid", since=since)
    assert run["state"]["type"] == "COMPLETED", run["state"]["message"]
