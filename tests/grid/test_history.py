"""The rows that a job leaves in Prefect's database, and the flow that prunes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Literal

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from deepgrid.lifecycle.states import JobStatus
from deployments.onemachine.grid import LocalGrid
from tests.grid.customer import PATIENCE_S, Customer
from tests.grid.runs import FINAL, run_now, runs_of, tasks_of
from tests.grid.support import cold, steps
from tests.grid.writers import writer_of

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

JOBS = 10
# 200 jobs at one per second leave 150 KB each, 40 KB without events. The first jobs of a new database leave more,
# because its indexes are nearly empty, and on a busy machine there are more rounds per job. With tags on each run, an
# event had eight resources.
MOST_KB, MOST_KB_WITHOUT_EVENTS, MOST_RESOURCES_PER_EVENT = 450, 180, 4.5
EVENTS = ("events", "event_resources")
SIZES = "SELECT relname, pg_total_relation_size(relid) FROM pg_stat_user_tables"


@dataclass(frozen=True)
class Sizes:
    """KB of Prefect's tables, and the numbers of events and their resources."""

    events_kb: float
    rest_kb: float
    events: int
    resources: int


@pytest.fixture
async def database(grid: LocalGrid) -> AsyncIterator[AsyncConnection]:
    engine = create_async_engine(grid.postgres.url("prefect"), isolation_level="AUTOCOMMIT")
    async with engine.connect() as connection:
        yield connection
    await engine.dispose()


async def sizes(database: AsyncConnection) -> Sizes:
    """Return the sizes of the tables, once the last events are written."""
    async with asyncio.timeout(PATIENCE_S):
        before, count = -1, await rows(database, "events")
        while before != count:
            await asyncio.sleep(4)
            before, count = count, await rows(database, "events")
    kb = {name: size / 1024 for name, size in await database.execute(text(SIZES))}
    events_kb = sum(kb.pop(name) for name in EVENTS)
    return Sizes(events_kb, sum(kb.values()), count, await rows(database, "event_resources"))


async def rows(database: AsyncConnection, table: Literal["events", "event_resources"]) -> int:
    return int((await database.execute(text(f"SELECT count(*) FROM {table}"))).scalar_one())  # noqa: S608


@pytest.mark.deep
async def test_a_job_leaves_little_in_prefects_database(customer: Customer, database: AsyncConnection) -> None:
    before = await sizes(database)
    ids = await asyncio.gather(*(asyncio.to_thread(customer.submit, steps("true")) for _ in range(JOBS)))
    for job_id in ids:
        assert (await customer.until(job_id, cold)).status is JobStatus.FINISHED
    after = await sizes(database)
    events_kb, rest_kb = (after.events_kb - before.events_kb) / JOBS, (after.rest_kb - before.rest_kb) / JOBS
    events, resources = after.events - before.events, after.resources - before.resources
    print(f"{events_kb + rest_kb:.0f} KB per job, {rest_kb:.0f} KB without its {events / JOBS:.1f} events")
    assert events_kb + rest_kb < MOST_KB
    assert rest_kb < MOST_KB_WITHOUT_EVENTS
    assert resources / events < MOST_RESOURCES_PER_EVENT


async def test_the_deployed_flow_keeps_what_is_young(customer: Customer, grid: LocalGrid) -> None:
    job_id = customer.submit(steps("true"))
    await customer.until(job_id, cold)
    done = await run_now(grid, "prune_history/grid", operator="grid", keep_days=1, keep_rounds_hours=1)
    assert done["state"]["type"] == "COMPLETED", done["state"]
    assert "older than" not in done["state"]["message"] and "run" in done["state"]["message"]
    runs = [run for name in ("alpha", "beta") for run in await runs_of(grid, f"run_job/{name}")]
    assert job_id in [run["parameters"]["job_id"] for run in runs]


async def test_a_round_writes_the_same_for_one_job_and_for_many(customer: Customer, grid: LocalGrid) -> None:
    """A waiting job that no cluster can run once wrote a task run per round."""
    impossible = steps("true").replace("gpus: 0", "gpus: 64")
    before = {run["id"] for run in await runs_of(grid, "meta_schedule/grid")}
    ids = await asyncio.gather(*(asyncio.to_thread(customer.submit, impossible) for _ in range(10)))
    done = await run_now(grid, "meta_schedule/grid", operator="grid")
    assert "wait" in done["state"]["message"], done["state"]
    try:
        rounds = [run for run in await runs_of(grid, "meta_schedule/grid", *FINAL) if run["id"] not in before]
        assert rounds
        for run in rounds[:5]:
            tasks = await tasks_of(grid, run["id"])
            assert len(tasks) <= 6, tasks
    finally:
        async with writer_of(grid, "customer") as writer:
            await asyncio.gather(*(writer.cancel_job(job_id) for job_id in ids))
