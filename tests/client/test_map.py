"""`map`: one job per parameter set, a limited number at a time, each once, even across interruptions and failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from deepgrid.chain.client import Chain
from deepgrid.client import (
    AsyncGrid,
    AsyncJob,
    ClientSettings,
    Grid,
    IdempotencyConflict,
    InputError,
    JobStatus,
    Unsubmitted,
    WaitTimeout,
)
from deepgrid.lifecycle.job import Job
from deepgrid.services.client import ServicesClient
from deepgrid.workflow import Definition, EnvVar
from tests.cli.live import EXAMPLE
from tests.client.batch_cluster import BatchCluster, batch_cluster
from tests.client.stage import Customer, Stage
from tests.client.sweeps import most_hot, request_transactions

SETS = [{"SEED": seed} for seed in range(8)]
QUICK = ClientSettings(poll_s=0.2, refill_s=1.0)


@pytest.fixture
async def grid(customer: Customer) -> AsyncIterator[AsyncGrid]:
    async with AsyncGrid(customer.key, customer.book, settings=QUICK) as opened:
        yield opened


@pytest.fixture
async def cluster(chain: Chain, stage: Stage) -> AsyncIterator[BatchCluster]:
    async with batch_cluster(chain, stage.operator.writer, stage.provider.writer) as working:
        yield working


async def ids_of(grid: AsyncGrid) -> list[int]:
    return [job.id async for job in grid.jobs()]


async def test_each_parameter_set_gets_a_job_and_never_more_than_at_once_are_hot(
    grid: AsyncGrid, chain: Chain, cluster: BatchCluster
) -> None:
    first_block = (await chain.head()).number
    sweep = await grid.map(EXAMPLE, iter(SETS), credits=100, at_once=3)
    assert len(sweep) == len(SETS)
    seen = [job.parameters async for job in sweep.as_completed()]
    assert sorted(map(str, seen)) == sorted(map(str, SETS))
    results = await sweep.results()
    assert [job.parameters for job in results] == SETS
    assert sorted(job.id for job in results) == sorted(await ids_of(grid))
    assert await most_hot(chain, grid.address, first_block) <= 3
    assert await grid.wallet.allowance == 0
    assert {job.cluster for job in results if isinstance(job, AsyncJob)} == {"alpha"}


async def test_a_failed_job_is_a_value_and_can_be_retried_alone(grid: AsyncGrid, cluster: BatchCluster) -> None:
    def third_fails(job: Job) -> tuple[JobStatus, int]:
        return (JobStatus.FAILED, 768) if job.id % 3 == 0 else (JobStatus.FINISHED, 0)

    cluster.end = third_fails
    sweep = await grid.map(EXAMPLE, SETS, credits=100, at_once=8)
    results = await sweep.results()
    failed = await sweep.failed()
    assert failed.ids == [job.id for job in results if job.id % 3 == 0]
    assert len(failed) + len(await sweep.finished()) == len(SETS)
    assert {job.exit_code for job in failed} == {3}
    cluster.end = lambda _: (JobStatus.FINISHED, 0)
    again = await failed.retry()
    assert [job.parameters for job in await again.results()] == [job.parameters for job in failed]
    assert not set(again.ids) & set(sweep.ids)
    summary = await sweep.summary()
    assert summary.states == {"finished": len(SETS) - len(failed), "failed": len(failed)}
    assert (summary.jobs, summary.locked, summary.cost + summary.refunds) == (8, 0, 800)
    assert "refunded" in str(summary)


async def test_equal_sets_get_a_job_each_and_a_key_finds_all_of_them_again(
    grid: AsyncGrid, customer: Customer, cluster: BatchCluster
) -> None:
    sets = [{"SEED": 1}, {"SEED": 2}, {"SEED": 1}]
    first = await (await grid.map(EXAMPLE, sets, credits=100, key="k")).results()
    assert len({job.id for job in first}) == 3
    async with AsyncGrid(customer.key, customer.book, settings=QUICK) as other:
        more = await other.map(EXAMPLE, [{"SEED": 3}, *sets], credits=100, key="k")
        again = await more.results()
        assert [job.id for job in again][1:] == [job.id for job in first]
        assert len(await ids_of(other)) == 4
        with pytest.raises(IdempotencyConflict, match="another workflow"):
            await (await other.map(EXAMPLE, sets, credits=100, key="k", pack=2)).results()
        retried = [await (await (await more.finished()).retry()).results() for _ in range(2)]
    assert [job.id for job in retried[0]] == [job.id for job in retried[1]]


async def test_two_calls_with_one_key_at_the_same_time_request_each_job_once(
    grid: AsyncGrid, customer: Customer, chain: Chain, cluster: BatchCluster
) -> None:
    first_block = (await chain.head()).number
    async with AsyncGrid(customer.key, customer.book, settings=QUICK) as other:
        sweeps = [await one.map(EXAMPLE, SETS, credits=100, at_once=3, key="both") for one in (grid, other)]
        ids = [[job.id for job in found] for found in await asyncio.gather(*(sweep.results() for sweep in sweeps))]
    assert ids[0] == ids[1]
    assert sorted(ids[0]) == sorted(await ids_of(grid))
    assert await most_hot(chain, grid.address, first_block) <= 3


async def test_the_budget_is_never_exceeded_and_too_few_credits_wait_for_refunds(
    grid: AsyncGrid, chain: Chain, cluster: BatchCluster
) -> None:
    first_block = (await chain.head()).number
    await (await grid.map(EXAMPLE, SETS, credits=100, most=250)).results()
    assert await most_hot(chain, grid.address, first_block) <= 2
    results = await (await grid.map(EXAMPLE, SETS, credits=400)).results()  # of 1,000
    assert {job.status for job in results} == {JobStatus.FINISHED}


async def test_a_sweep_without_credits_and_without_hot_jobs_says_so_after_all_others(
    grid: AsyncGrid, cluster: BatchCluster
) -> None:
    """The refund of the first job does not suffice for the second one, because the first one had a cost."""
    sweep = await grid.map(EXAMPLE, SETS[:2], credits=1000)
    ended = []
    with pytest.raises(InputError, match="1,?000 credits cannot be locked.* 1 jobs were not requested"):
        async for job in sweep.as_completed():
            ended.append(job.status)  # noqa: PERF401 - a comprehension would lose them with the error
    assert ended == [JobStatus.FINISHED]
    with pytest.raises(InputError, match="cannot be locked"):
        await sweep.results()
    assert (await sweep.summary()).states == {"finished": 1, "not requested": 1}


async def test_the_sync_job_set_is_used_as_the_guide_shows(customer: Customer, cluster: BatchCluster) -> None:
    def use() -> None:
        with Grid(customer.key, customer.book, settings=QUICK) as grid:
            sweep = grid.map(EXAMPLE, SETS[:3], credits=100, at_once=2, key="sync")
            seen = [(job.parameters, job.status, job.bill) for job in sweep.as_completed()]
            assert sorted(str(parameters) for parameters, _, _ in seen) == sorted(map(str, SETS[:3]))
            assert [job.parameters for job in sweep.results()] == SETS[:3]
            assert [job.id for job in sweep] == sweep.ids
            assert (len(sweep), len(sweep.failed()), sweep.wait() is sweep) == (3, 0, True)
            assert sweep.summary().states == {"finished": 3}
            assert sweep.failed().retry().results() == []

    await asyncio.to_thread(use)


async def test_a_definition_that_the_services_refuse_is_a_value(
    grid: AsyncGrid, cluster: BatchCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = ServicesClient.upload

    async def refuse_two(self: ServicesClient, job: Definition, salt: bytes | None = None) -> str:
        if EnvVar(key="SEED", value="2") in job.env:
            raise InputError("shellcheck warns about the batch script")
        return await upload(self, job, salt)

    monkeypatch.setattr(ServicesClient, "upload", refuse_two)
    sweep = await grid.map(EXAMPLE, SETS[:4], credits=100)
    results = await sweep.results()
    assert [job.status.words for job in results] == ["finished", "finished", "failed", "finished"]
    refused = results[2]
    assert isinstance(refused, Unsubmitted)
    assert (refused.id, refused.parameters, refused.bill.cost) == (0, {"SEED": 2}, 0)
    assert refused.outcome == "shellcheck warns about the batch script"
    assert (await sweep.summary()).states == {"finished": 3, "not requested": 1}
    monkeypatch.undo()
    again = await (await sweep.failed()).retry()
    assert [job.status for job in await again.results()] == [JobStatus.FINISHED]


async def test_packs_are_jobs_with_a_tuple_of_parameters(grid: AsyncGrid, cluster: BatchCluster) -> None:
    results = await (await grid.map(EXAMPLE, SETS, credits=100, pack=3)).results()
    assert [job.parameters for job in results] == [tuple(SETS[at : at + 3]) for at in (0, 3, 6)]


async def test_a_set_is_cancelled_with_what_was_not_requested_yet(grid: AsyncGrid, chain: Chain) -> None:
    sweep = await grid.map(EXAMPLE, SETS, credits=100, at_once=2)
    with pytest.raises(WaitTimeout, match="8 of 8 jobs are not over after 0.5 s"):
        await sweep.wait(timeout=0.5)
    with pytest.raises(InputError, match="8 of 8 jobs are not over"):
        await sweep.retry()
    while len(sweep.ids) < 2:
        await asyncio.sleep(0.05)
    await sweep.cancel()
    results = await sweep.results()
    assert {job.status for job in results} == {JobStatus.CANCELLED}
    assert sum(isinstance(job, Unsubmitted) for job in results) == 6
    assert await chain.balance(grid.address) == 1000 * 10**18


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"at_once": 0}, "at_once is 0"),
        ({"pack": 1.5}, "pack is 1.5"),
        ({"most": 50}, "smaller than the credits of one job"),
        ({"most": 500, "delegate_spending": True}, "does not hold with delegate_spending"),
        ({"credits": 1}, "1 credits are too few"),
        ({"parameters": []}, "There are no parameter sets"),
        ({"parameters": [{}, {"PATH": "x"}]}, "Parameter set 2: the variable 'PATH'"),
        ({"parameters": [{}, "x"]}, "Parameter set 2 is not a mapping"),
        ({"key": ""}, "An idempotency key is a text"),
    ],
)
async def test_wrong_arguments_are_refused_before_anything_is_locked(
    grid: AsyncGrid, options: dict[str, object], message: str
) -> None:
    arguments: dict[str, object] = {"parameters": SETS, "credits": 100, **options}
    with pytest.raises(InputError, match=message):
        await grid.map(EXAMPLE, **arguments)  # type: ignore[arg-type]
    assert await ids_of(grid) == []


async def test_few_transactions_request_many_jobs(grid: AsyncGrid, chain: Chain, cluster: BatchCluster) -> None:
    first_block = (await chain.head()).number
    await (await grid.map(EXAMPLE, [{"N": n} for n in range(10)], credits=100, at_once=10)).results()
    assert await request_transactions(chain, grid.address, first_block) == 1


async def test_a_parameter_that_the_workflow_does_not_mention_is_warned_of(grid: AsyncGrid) -> None:
    with pytest.warns(UserWarning, match=r"does not mention the parameter GREETIN \(did you mean GREETING\?\)"):
        sweep = await grid.map(EXAMPLE, [{"GREETIN": "a", "CPUS": 2}], credits=100)
    await sweep.cancel()
    with pytest.raises(InputError, match="Parameter set 2: The variable GREETING is None"):
        await grid.map(EXAMPLE, [{"GREETING": 1}, {"GREETING": None}], credits=100)
