"""`retries=` runs a job again whose failure was not its program's: in `submit`, `run` and `map`, never twice."""

from __future__ import annotations

import asyncio

import pytest

from deepgrid.chain.client import Chain
from deepgrid.client import AsyncGrid, AsyncJob, ClientSettings, InputError, JobStatus
from deepgrid.lifecycle.job import Job
from tests.cli.live import EXAMPLE
from tests.client.batch_cluster import batch_cluster
from tests.client.stage import Customer, Stage
from tests.waiting import until

NODE_FAILED = "a node of the cluster failed"
QUICK = ClientSettings(poll_s=0.2, refill_s=1.0)


async def fail(stage: Stage, job: AsyncJob, error: str = NODE_FAILED) -> None:
    await stage.run(job)
    await stage.provider.writer.settle(job.id, JobStatus.FAILED, 1, error, 0)


async def test_a_job_that_its_cluster_lost_is_run_again_while_it_is_waited_for(
    grid: AsyncGrid, customer: Customer, stage: Stage
) -> None:
    job = await grid.submit(EXAMPLE, credits=100, key="k", retries=1, tags=["project=wing"], name="mine")
    first, same = job.id, {job}
    await fail(stage, job)
    waits = [asyncio.create_task(job.wait(timeout="120s")) for _ in range(2)]  # both decide about one next attempt
    await until(lambda: job.id != first)
    await fail(stage, job)
    assert await asyncio.gather(*waits) == [job, job]
    second = job.id
    assert (job.status, job.earlier_attempts, job.name, job in same) == (JobStatus.FAILED, [first], "mine", True)
    assert [one.id async for one in grid.jobs(tags="project=wing")] == [second, first]
    async with AsyncGrid(customer.key, customer.book) as restarted:
        found = await restarted.submit(EXAMPLE, credits=100, key="k", retries=1, name="mine")
        assert found.id == first
        assert (await found.wait(timeout="120s")).id == second
    assert await grid.jobs().count() == 2


async def test_a_failure_of_the_program_is_final(grid: AsyncGrid, stage: Stage) -> None:
    job = await grid.submit(EXAMPLE, credits=100, retries=3)
    await fail(stage, job, "")
    await job.wait(timeout="120s")
    assert (job.status, job.earlier_attempts, await grid.jobs().count()) == (JobStatus.FAILED, [], 1)
    for wrong in (-1, 21, True, "2"):
        with pytest.raises(InputError, match="whole number from 0 to 20"):
            await grid.submit(EXAMPLE, credits=100, retries=wrong)


async def test_map_runs_lost_jobs_again_and_a_restart_finds_them(
    chain: Chain, stage: Stage, customer: Customer
) -> None:
    sets = [{"SEED": seed} for seed in range(3)]
    lost: list[int] = []

    def first_two_are_lost(job: Job) -> tuple[JobStatus, int]:
        if len(lost) < 2:
            lost.append(job.id)
            return JobStatus.FAILED, 0
        return JobStatus.FINISHED, 0

    async with batch_cluster(chain, stage.operator.writer, stage.provider.writer) as cluster:
        cluster.end, cluster.error = first_two_are_lost, NODE_FAILED
        for _ in range(2):  # the second time as a restarted program
            async with AsyncGrid(customer.key, customer.book, settings=QUICK) as grid:
                sweep = await grid.map(EXAMPLE, sets, credits=100, key="lost", retries=2)
                results = await sweep.results()
                assert [job.parameters for job in results] == sets
                assert {job.status for job in results} == {JobStatus.FINISHED}
                assert not set(sweep.ids) & set(lost)
                assert await grid.jobs().count() == 5
