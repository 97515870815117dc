"""`Grid` and the other sync classes on the live grid: results, errors and closing."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal

import pytest

from deepgrid.chain.client import Chain
from deepgrid.client import Grid, InputError, Job, JobFailed, JobStatus, WaitTimeout
from deepgrid.client.sync.event_loop_thread import event_loop_thread
from deepgrid.lifecycle.job import Job as ChainJob
from tests.cli.live import EXAMPLE
from tests.client.stage import Customer
from tests.client.support import End, SimulatedCluster
from tests.waiting import wait_until


@pytest.fixture
def sync_grid(customer: Customer) -> Iterator[Grid]:
    with Grid(customer.key, customer.book) as opened:
        yield opened


def test_a_job_is_submitted_waited_for_and_read(sync_grid: Grid, cluster: SimulatedCluster) -> None:
    job = sync_grid.submit(EXAMPLE, credits=100, name="mine")
    assert isinstance(job, Job)
    assert job.wait(timeout="60s") is job
    assert job.check() is job
    assert (job.name, job.status, job.exit_code, job.cluster) == ("mine", JobStatus.FINISHED, 0, cluster.name)
    assert job.bill.cost + job.bill.refund == 100
    assert [line.text for line in job.logs(follow=True)] == ["one", "two"]
    assert b"".join(job.output()) == b"one\ntwo\n"
    assert job.history[-1].status is JobStatus.FINISHED
    assert len(job.transactions) == len(job.history)
    assert repr(job) == f"Job({job.id}, 'mine', finished)"


def test_run_raises_the_error_of_the_job_with_the_sync_job(sync_grid: Grid, cluster: SimulatedCluster) -> None:
    cluster.ends = lambda _: End(status=JobStatus.FAILED, wait_status=768)
    with pytest.raises(JobFailed) as caught:
        sync_grid.run(EXAMPLE, credits=100)
    assert isinstance(caught.value.job, Job)
    assert caught.value.exit_code == caught.value.job.exit_code == 3


def test_a_wait_has_a_limit_and_names_the_same_job(sync_grid: Grid) -> None:
    job = sync_grid.submit(EXAMPLE, credits=100)
    with pytest.raises(WaitTimeout) as caught:
        job.wait(timeout=0.2)
    assert caught.value.job is job


def test_jobs_are_an_iterator_that_can_be_left_early(sync_grid: Grid) -> None:
    ids = [sync_grid.submit(EXAMPLE, credits=100).id for _ in range(3)]
    assert [job.id for job in sync_grid.jobs()] == ids[::-1]
    assert next(iter(sync_grid.jobs(status="pending"))).id == ids[-1]
    with pytest.raises(InputError, match="is not a state"):
        sync_grid.jobs(status="asleep")


def test_the_wallet_has_plain_properties(sync_grid: Grid) -> None:
    assert sync_grid.wallet.credits == 1000
    sync_grid.wallet.set_allowance("1.5")
    assert sync_grid.wallet.allowance == Decimal("1.5")
    assert sync_grid.wallet.address == sync_grid.address


def test_a_callback_cannot_call_the_grid(sync_grid: Grid) -> None:
    async def calls_back() -> None:
        sync_grid.clusters()

    with pytest.raises(InputError, match="callback of a Grid cannot call"):
        event_loop_thread().run(calls_back())


def test_only_a_grid_makes_jobs() -> None:
    with pytest.raises(TypeError, match="Job objects are made by a Grid"):
        Job()


def test_an_iterator_that_is_left_closes_its_source() -> None:
    closed = threading.Event()

    async def numbers() -> AsyncIterator[int]:
        try:
            for number in range(10**6):
                yield number
        finally:
            closed.set()

    taken = event_loop_thread().iterate(numbers())
    assert [next(taken) for _ in range(200)] == list(range(200))
    taken.close()  # type: ignore[attr-defined]
    assert closed.wait(60)


def test_an_iterator_gives_all_items_before_its_error() -> None:
    async def fails() -> AsyncIterator[int]:
        for number in range(100):
            yield number
        raise ValueError("the source fails")

    taken = []
    with pytest.raises(ValueError, match="the source fails"):
        for number in event_loop_thread().iterate(fails()):
            taken.append(number)  # noqa: PERF402 - the items before the error
    assert taken == list(range(100))


def test_an_exit_in_a_callback_reaches_the_caller_and_not_the_loop() -> None:
    async def leaves() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        event_loop_thread().run(leaves())
    assert event_loop_thread().run(asyncio.sleep(0, "still there")) == "still there"


def test_a_grid_that_is_not_closed_warns_and_its_connection_closes_with_its_last_job(
    customer: Customer, cluster: SimulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, close = threading.Event(), Chain.close

    async def recorded(chain: Chain) -> None:
        await close(chain)
        closed.set()

    monkeypatch.setattr(Chain, "close", recorded)
    left = [Grid(customer.key, customer.book)]
    job = left[0].submit(EXAMPLE, credits=100)
    with pytest.warns(ResourceWarning, match="was not closed"):
        left.clear()
    assert job.wait(timeout=60).over  # a job alone keeps using the connection
    assert not closed.is_set()
    del job
    gc.collect()
    assert closed.wait(60)


def test_closing_ends_waits_of_other_threads(customer: Customer) -> None:
    grid = Grid(customer.key, customer.book)
    job = grid.submit(EXAMPLE, credits=100)
    errors: list[InputError] = []

    def wait() -> None:
        try:
            job.wait()
        except InputError as error:
            errors.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    wait_until(lambda: job._async._connection.poller._watches)
    grid.close()
    waiting.join(60)
    assert "closed while jobs were waited for" in str(errors[0])
    with pytest.raises(InputError, match="This grid was closed"):
        grid.job(job.id)


def test_a_job_that_runs_is_seen_running(sync_grid: Grid, cluster: SimulatedCluster) -> None:
    def never(_: ChainJob) -> None:
        return None

    cluster.ends = never
    job = sync_grid.submit(EXAMPLE, credits=100)
    wait_until(lambda: job.refresh().status is JobStatus.RUNNING)
    job.top_up(50)
    assert job.locked == 150
