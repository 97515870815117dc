"""The operator reads the runs that providers signed, and only those."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest

from deepgrid.billing.entries import Allocation, Ledger, Run, Runs, Settlement
from deepgrid.billing.period import DAY_S
from deepgrid.billing.reconcile import reconcile
from deepgrid.errors import AccessDenied, InputError, NotFound, ServiceError
from deepgrid.lifecycle.job import Job
from deepgrid.operator.receipt_runs import (
    RECEIPTS_AT_ONCE,
    MissingReceipts,
    read_receipt_runs,
    settlement_to_compare_again,
)
from deepgrid.services.client.answers import Answer, error_of
from tests.billing.books import bill_more, history
from tests.billing.frauds import BASE
from tests.services.receipt_support import receipt_of, settled_job
from tests.services.support import MemoryChain


class Kept:
    """Receipts of some jobs."""

    def __init__(self, receipts: dict[int, bytes], errors: dict[int, list[ServiceError]] | None = None) -> None:
        self._receipts = receipts
        self._errors = errors or {}

    async def receipt(self, job_id: int) -> bytes:
        if self._errors.get(job_id):
            raise self._errors[job_id].pop(0)
        if job_id not in self._receipts:
            raise NotFound(f"there is no receipt of job {job_id}")
        return self._receipts[job_id]


@pytest.fixture
def jobs() -> list[Job]:
    chain = MemoryChain()
    return [settled_job(chain, job_id) for job_id in (1, 2, 3)]


def ledger(jobs: list[Job]) -> Ledger:
    ends = [Settlement(job.id, job.provider or "", job.customer, 2, 0, 0, 0, job.ended_at, 5, "0x") for job in jobs]
    return Ledger(
        first_block=1, last_block=9, head_block=9, requested={}, claims=(), given_back=(), settlements=tuple(ends),
        transfers=(), reported_too_much={}, jobs={},
        balance_wei=0, platform_cut_wei=0,
    )  # fmt: skip


@dataclass
class Reader:
    """Reads receipts as a run of the books does, at the time `now`."""

    file: Path
    now: int = 2_000_000_000

    async def __call__(self, receipts: Kept, ledger: Ledger) -> Runs:
        return await read_receipt_runs(receipts, ledger, MissingReceipts(self.file), self.now)

    async def again_from(self, receipts: Kept) -> int | None:
        return await settlement_to_compare_again(receipts, MissingReceipts(self.file), self.now)


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    return Reader(tmp_path / "books" / "missing.json")


async def test_a_receipt_says_how_its_job_ran(jobs: list[Job], read: Reader) -> None:
    runs = await read(Kept({1: receipt_of(jobs[0])}), ledger(jobs))
    given = Allocation(cpus=1, nodes=1, mem_mb=128)
    assert runs.runs == (Run(1, 999_990, 17, "COMPLETED", 1_000_000, 1_000_090, ran_s=90, given=given),)
    assert (runs.complete, runs.partial) == (False, True)


async def test_what_its_provider_did_not_sign_is_left_out(jobs: list[Job], read: Reader) -> None:
    forged = {1: receipt_of(jobs[0], signer="customer"), 2: receipt_of(jobs[0]), 3: b"{}"}
    assert (await read(Kept(forged), ledger(jobs))).runs == ()
    another = [replace(jobs[0], provider="0x" + "9" * 40)]
    assert (await read(Kept({1: receipt_of(jobs[0])}), ledger(another))).runs == ()


def away() -> ServiceError:
    return ServiceError("The services do not answer.")


async def failing_for_days(read: Reader, jobs: list[Job], failing: int, *, runs: int = 3) -> list[Runs]:
    """Return the runs of daily books while the receipt of one job always fails."""
    kept, found = {job.id: receipt_of(job) for job in jobs if job.id != failing}, []
    for _ in range(runs):
        found.append(await read(Kept(kept, {failing: [away()]}), ledger(jobs)))
        read.now += DAY_S
    return found


async def test_a_receipt_that_always_fails_holds_the_books_for_a_day_and_three_runs(
    jobs: list[Job], read: Reader
) -> None:
    """It once held them without end."""
    found = await failing_for_days(read, jobs, 2)
    assert [runs.late for runs in found] == [True, True, False]
    assert found[1].source.endswith("the next run reads them")
    assert found[2].source.endswith("the books continue, and later runs ask for them")
    assert [[run.job_id for run in runs.runs] for runs in found] == [[1, 3]] * 3


async def test_many_runs_of_one_day_give_nothing_up(jobs: list[Job], read: Reader) -> None:
    kept = {1: receipt_of(jobs[0])}
    for _ in range(10):
        assert (await read(Kept(kept, {2: [away()], 3: [away()]}), ledger(jobs))).late
        read.now += DAY_S // 11


async def test_no_receipt_is_given_up_while_the_services_are_away(jobs: list[Job], read: Reader) -> None:
    for _ in range(9):
        assert (await read(Kept({}, {job.id: [away()] for job in jobs}), ledger(jobs))).late
        read.now += DAY_S


async def test_sixteen_receipts_that_always_fail_are_no_outage(read: Reader) -> None:
    """The books stop at sixteen failures in a row, as services that are away fail for each job."""
    chain = MemoryChain()
    jobs = [settled_job(chain, job_id) for job_id in range(1, 1 + RECEIPTS_AT_ONCE + 4)]
    kept = {job.id: receipt_of(job) for job in jobs[RECEIPTS_AT_ONCE:]}
    late = []
    for _ in range(5):
        failing = {job.id: [away()] for job in jobs[:RECEIPTS_AT_ONCE]}
        late.append((await read(Kept(kept, failing), ledger(jobs))).late)
        read.now += DAY_S
    assert (late[0], late[-1]) == (True, False)


async def test_a_receipt_that_comes_back_is_compared_again(jobs: list[Job], read: Reader) -> None:
    await failing_for_days(read, jobs, 2)
    assert await read.again_from(Kept({}, {2: [away()]})) is None
    kept = Kept({job.id: receipt_of(job) for job in jobs})
    assert await read.again_from(kept) == jobs[1].ended_at
    assert [run.job_id for run in (await read(kept, ledger(jobs))).runs] == [1, 2, 3]
    assert await read.again_from(kept) is None, "it was compared"


async def test_a_missing_receipt_is_asked_for_during_a_month(jobs: list[Job], read: Reader) -> None:
    await failing_for_days(read, jobs, 2)
    read.now += 30 * DAY_S
    await read(Kept({1: receipt_of(jobs[0])}), replace(ledger(jobs), settlements=ledger(jobs).settlements[:1]))
    assert await read.again_from(Kept({2: receipt_of(jobs[1])})) is None


async def test_a_damaged_file_of_missing_receipts_is_named(jobs: list[Job], read: Reader) -> None:
    read.file.parent.mkdir()
    read.file.write_text('{"x": 1}')
    with pytest.raises(InputError, match="is damaged"):
        await read(Kept({}), ledger(jobs))


async def test_services_that_are_away_stop_no_books(jobs: list[Job], read: Reader) -> None:
    runs = await read(Kept({}, {job.id: [away()] for job in jobs}), ledger(jobs))
    assert (runs.runs, runs.partial, runs.late) == ((), True, True)
    assert runs.source.startswith("no receipts of 3 of 3 jobs")


async def test_one_failure_drops_no_other_receipt(jobs: list[Job], read: Reader) -> None:
    """It once dropped the receipts of all jobs in the period, which no later run compared."""
    kept = {job.id: receipt_of(job) for job in jobs}
    runs = await read(Kept(kept, {2: [away()]}), ledger(jobs))
    assert ([run.job_id for run in runs.runs], runs.late) == ([1, 3], True)
    assert not (await read(Kept(kept), ledger(jobs))).late


@pytest.mark.parametrize("status", [429, 503])
async def test_busy_services_are_asked_again(jobs: list[Job], read: Reader, status: int) -> None:
    busy = error_of(Answer(status, httpx.Headers({"Retry-After": "0"}), b""))
    assert isinstance(busy, ServiceError)
    runs = await read(Kept({1: receipt_of(jobs[0])}, {1: [busy, busy]}), ledger(jobs))
    assert ([run.job_id for run in runs.runs], runs.late) == ([1], False)


async def test_refused_access_is_not_taken_for_an_outage(jobs: list[Job], read: Reader) -> None:
    with pytest.raises(AccessDenied):
        await read(Kept({}, {2: [AccessDenied("not the operator")]}), ledger(jobs))


async def test_a_period_without_its_receipts_is_not_compared_yet(read: Reader) -> None:
    """A bill with five minutes too much, and services that are away: the period was passed for good."""
    made = history(replace(BASE, ran_s=90))
    bill_more(made, 5)
    books = made.ledger()
    runs = await read(Kept({}, {one.job_id: [away()] for one in books.settlements}), books)
    result = reconcile("grid", books, made.span, runs=runs)
    assert result.undecided
    assert "reads the period again" in result.message
    signed = Runs(tuple(made.runs), complete=False, partial=True)
    assert not reconcile("grid", books, made.span, runs=signed).undecided
