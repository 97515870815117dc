"""Jobs that wait for an earlier job: their repetitions wait too, and none is paid for that would be cancelled."""

from __future__ import annotations

import pytest

from deepgrid.client import AsyncGrid, AsyncJob, InputError, JobStatus
from tests.cli.live import EXAMPLE
from tests.client.stage import Stage
from tests.waiting import until

SETS = [{"N": n} for n in range(3)]
SWEPT = """
resources: {tasks: 1, cpusPerTask: 1, memPerCpu: 128, gpus: 0}
steps:
  - run: {command: echo $N}
"""


async def fail(stage: Stage, job: AsyncJob) -> int:
    await stage.run(job)
    await stage.provider.writer.settle(job.id, JobStatus.FAILED, 1, "", 256)
    return job.id


async def submit(grid: AsyncGrid, **options: object) -> AsyncJob:
    return await grid.submit(EXAMPLE, credits=100, **options)  # type: ignore[arg-type]


async def test_no_job_is_submitted_after_one_that_ended_without_finishing(grid: AsyncGrid, stage: Stage) -> None:
    first = await submit(grid)
    waiting = await submit(grid, after=first)
    failed = await fail(stage, first)
    await waiting.cancel()  # as the operator does
    balance = await grid.wallet.credits
    refused = rf"Job {failed} ended without finishing \(failed\)"
    for attempt in (waiting.again(), submit(grid, after=first), grid.map(SWEPT, SETS, credits=100, after=failed)):
        with pytest.raises(InputError, match=refused) as error:
            await attempt
        assert f"--after-any {failed}" in (error.value.next_step or "")
    assert (await grid.jobs().count(), await grid.wallet.credits) == (2, balance)
    assert (await waiting.again(after_any=failed)).on_chain.wishes.after_any
    assert (await submit(grid, after_any=failed)).status is JobStatus.PENDING


async def test_a_repetition_waits_for_the_same_job_unless_a_cluster_had_it(grid: AsyncGrid, stage: Stage) -> None:
    first = await submit(grid)
    waiting = await submit(grid, after_any=first)
    await waiting.cancel()
    again = await waiting.again()
    assert (again.on_chain.wishes.after_job, again.on_chain.wishes.after_any) == (first.id, True)
    await fail(stage, first)
    await fail(stage, again)
    assert (await (await grid.job(again.id)).again()).on_chain.wishes.after_job == 0


async def test_a_sweep_is_repeated_after_the_job_that_repeats_the_first(grid: AsyncGrid, stage: Stage) -> None:
    first = await submit(grid)
    sweep = await (await grid.map(SWEPT, SETS, credits=100, after=first)).requested()
    failed = await fail(stage, first)
    await sweep.cancel()
    await sweep.wait(timeout="120s")
    for attempt in (grid.retry_sweep(sweep.sweep_id), (await sweep.failed()).retry()):
        with pytest.raises(InputError, match=f"Job {failed} ended without finishing"):
            await attempt
    second = await first.again()
    jobs = [await grid.job(number) for number in await grid.retry_sweep(sweep.sweep_id, after=second)]
    assert [job.on_chain.wishes.after_job for job in jobs] == 3 * [second.id]


@pytest.mark.parametrize("key", [None, "chained"])
async def test_a_sweep_requests_no_more_once_the_job_before_it_failed(
    grid: AsyncGrid, stage: Stage, key: str | None
) -> None:
    first = await submit(grid)
    sweep = await grid.map(SWEPT, SETS, credits=100, at_once=1, after=first, key=key)
    await until(lambda: sweep.ids)
    failed = await fail(stage, first)
    await next(iter(sweep)).cancel()
    results = await sweep.results()
    assert [job.status for job in results] == 3 * [JobStatus.CANCELLED]
    assert [job.id > 0 for job in results] == [True, False, False]
    assert f"Job {failed} ended without finishing" in results[2].outcome
    assert await grid.jobs().count() == 2


async def test_a_job_whose_number_may_change_is_not_waited_for(grid: AsyncGrid, stage: Stage) -> None:
    first = await submit(grid, retries=2)
    for name in ("after", "after_any"):
        with pytest.raises(InputError, match=f"Job {first.id} has retries left"):
            await submit(grid, **{name: first})
    await fail(stage, first)
    await first.wait(timeout="120s")
    assert first.retries_left == 0, "its program failed"
    assert (await submit(grid, after_any=first)).on_chain.wishes.after_job == first.id
