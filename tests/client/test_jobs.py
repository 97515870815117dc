"""Jobs of the client: submission, waiting, reading, and every way in which a job can end."""

from __future__ import annotations

import asyncio
import copy
import pickle
from decimal import Decimal

import pytest

from deepgrid.client import (
    AsyncGrid,
    Grid,
    InputError,
    JobCancelled,
    JobError,
    JobFailed,
    JobPanicked,
    JobStatus,
    OutOfCredits,
    WaitTimeout,
)
from tests.cli.live import EXAMPLE
from tests.client.stage import Customer, Stage


async def test_a_job_is_submitted_and_its_attributes_are_those_of_the_chain(grid: AsyncGrid, stage: Stage) -> None:
    job = await grid.submit(EXAMPLE, credits=100, uses=["os=linux"], name="mine")
    assert (job.name, job.status, job.cluster) == ("mine", JobStatus.PENDING, "")
    assert "meta-scheduler" in job.waits_for
    assert job.locked == 100
    await stage.run(job)
    await job.refresh()
    assert (job.status, job.cluster, job.waits_for) == (JobStatus.RUNNING, "alpha", "")
    assert [step.status for step in await job.history][-1] is JobStatus.RUNNING
    assert (await grid.job(job.id)).on_chain == job.on_chain
    with pytest.raises(InputError, match=rf"Job {job.id} has no bill yet: it is running\.") as early:
        _ = job.bill
    assert early.value.next_step == "Wait for it first."


async def test_a_finished_job_has_a_bill_that_adds_up(grid: AsyncGrid, stage: Stage) -> None:
    job = await grid.submit(EXAMPLE, credits=100)
    await stage.run(job)
    waiting = asyncio.create_task(job.wait(timeout="60s"))
    await stage.provider.writer.settle(job.id, JobStatus.FINISHED, 2)
    await (await waiting).check()
    assert (job.exit_code, job.outcome) == (0, "exit status 0")
    bill = job.bill
    assert bill.minutes == 1  # minutes that cannot have passed yet are not billed
    assert bill.cost == bill.rate == bill.to_provider + bill.platform_cut
    assert bill.cost + bill.refund == bill.locked == 100


async def test_a_wait_has_a_limit_and_the_job_continues(grid: AsyncGrid) -> None:
    job = await grid.submit(EXAMPLE, credits=100)
    with pytest.raises(WaitTimeout, match=f"Job {job.id} is not over after 0.5 s") as caught:
        await job.wait(timeout=0.5)
    assert (caught.value.job, caught.value.transient) == (job, True)
    with pytest.raises(InputError, match="is not over: it is pending"):
        await job.check()


@pytest.mark.parametrize(
    ("status", "wait_status", "error", "exit_code"),
    [
        (JobStatus.FAILED, 768, JobFailed, 3),
        (JobStatus.FAILED, 9, JobFailed, 137),
        (JobStatus.OUT_OF_CREDITS, 0, OutOfCredits, None),
    ],
)
async def test_a_job_that_does_not_finish_raises_its_error(
    grid: AsyncGrid, stage: Stage, status: JobStatus, wait_status: int, error: type[JobError], exit_code: int | None
) -> None:
    job = await grid.submit(EXAMPLE, credits=100)
    await stage.run(job)
    await stage.provider.writer.settle(job.id, status, 1, "the reason", wait_status)
    await job.wait(timeout=60)
    with pytest.raises(error, match=f"Job {job.id} is {status.words}.*the reason") as caught:
        await job.check()
    assert caught.value.job is job
    assert job.exit_code == exit_code
    if isinstance(caught.value, JobFailed):
        assert (caught.value.exit_code, caught.value.signal) == (exit_code, 9 if wait_status == 9 else None)


async def test_cancelled_and_panicked_jobs_raise_their_errors(grid: AsyncGrid, stage: Stage) -> None:
    job, other = await grid.submit(EXAMPLE, credits=100), await grid.submit(EXAMPLE, credits=100)
    await job.cancel()
    with pytest.raises(JobCancelled):
        await (await job.wait(timeout=60)).check()
    await stage.operator.writer.panic_job(other.id, "the node burns")
    with pytest.raises(JobPanicked, match="the node burns"):
        await (await other.wait(timeout=60)).check()
    assert other.bill.refund == 100


async def test_more_time_is_bought_for_a_running_job(grid: AsyncGrid, stage: Stage) -> None:
    job = await grid.submit(EXAMPLE, credits=100)
    await stage.run(job)
    before = job.on_chain.granted_minutes
    await job.top_up("50.5")
    assert job.locked == Decimal("150.5")
    assert job.on_chain.granted_minutes > before


async def test_jobs_are_listed_newest_first_and_filtered_by_state(grid: AsyncGrid) -> None:
    first = await grid.submit(EXAMPLE, credits=100)
    second = await grid.submit(EXAMPLE, credits=100)
    await first.cancel()
    assert [job.id async for job in grid.jobs()] == [second.id, first.id]
    assert [job.id async for job in grid.jobs(status="cancelled")] == [first.id]
    assert [job.id async for job in grid.jobs(status=["pending", JobStatus.RUNNING])] == [second.id]
    with pytest.raises(InputError, match="is not a state"):
        [job async for job in grid.jobs(status="asleep")]


async def test_balances_are_exact(grid: AsyncGrid) -> None:
    assert await grid.wallet.credits == 1000
    await grid.wallet.set_allowance("12.000000000000000001")
    assert await grid.wallet.allowance == Decimal("12.000000000000000001")
    assert await grid.wallet.gas > 0
    with pytest.raises(InputError, match="is a float"):
        await grid.wallet.set_allowance(12.5)  # type: ignore[arg-type]


async def test_without_a_key_jobs_and_clusters_are_read_and_nothing_is_sent(grid: AsyncGrid, stage: Stage) -> None:
    job = await grid.submit(EXAMPLE, credits=100)
    reader = AsyncGrid.read_only(grid._book)
    async with reader:
        assert (await reader.job(job.id)).name == job.name
        assert "alpha" in [cluster.name for cluster in await reader.clusters()]
        with pytest.raises(InputError, match="read-only"):
            await reader.submit(EXAMPLE, credits=100)


async def test_a_quote_names_offers_misfits_and_the_deposit(grid: AsyncGrid, stage: Stage) -> None:
    quote = await grid.estimate(EXAMPLE, minutes=90, affinities=["os:in:lin"])
    offer = next(offer for offer in quote.offers if offer.address == stage.provider.address)
    assert offer.cost == 90 * offer.rate
    assert quote.needed >= 100
    other = await grid.estimate(EXAMPLE, minutes=90, uses=["os=beos"])
    assert other.offers == ()
    assert "has os=linux, not os==beos" in {misfit.why for misfit in other.misfits}


async def test_the_same_job_is_equal_and_a_job_says_why_it_cannot_be_pickled(
    grid: AsyncGrid, customer: Customer
) -> None:
    job, other = [await grid.submit(EXAMPLE, credits=100) for _ in range(2)]
    again = await grid.job(str(job.id))  # type: ignore[arg-type]
    assert again is not job
    assert len({job, again, other}) == 2
    for attempt in (pickle.dumps, copy.copy):
        with pytest.raises(InputError, match=f"Job {job.id} holds a connection"):
            attempt(job)
    with Grid(customer.key, customer.book) as sync:
        same = await asyncio.to_thread(sync.job, job.id)
        assert (same == await asyncio.to_thread(sync.job, job.id)) is True
        with pytest.raises(InputError, match="cannot be pickled"):
            pickle.dumps(same)
