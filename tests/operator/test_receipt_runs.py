"""The operator reads the runs that providers signed, and only those."""

from __future__ import annotations

from dataclasses import replace

import httpx
import pytest

from deepgrid.billing.entries import Allocation, Ledger, Run, Runs, Settlement
from deepgrid.billing.reconcile import reconcile
from deepgrid.errors import AccessDenied, NotFound, ServiceError
from deepgrid.lifecycle.job import Job
from deepgrid.operator.receipt_runs import read_receipt_runs
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


async def test_a_receipt_says_how_its_job_ran(jobs: list[Job]) -> None:
    runs = await read_receipt_runs(Kept({1: receipt_of(jobs[0])}), ledger(jobs))
    given = Allocation(cpus=1, nodes=1, mem_mb=128)
    assert runs.runs == (Run(1, 999_990, 17, "COMPLETED", 1_000_000, 1_000_090, ran_s=90, given=given),)
    assert (runs.complete, runs.partial) == (False, True)


async def test_what_its_provider_did_not_sign_is_left_out(jobs: list[Job]) -> None:
    forged = {1: receipt_of(jobs[0], signer="customer"), 2: receipt_of(jobs[0]), 3: b"{}"}
    assert (await read_receipt_runs(Kept(forged), ledger(jobs))).runs == ()
    another = [replace(jobs[0], provider="0x" + "9" * 40)]
    assert (await read_receipt_runs(Kept({1: receipt_of(jobs[0])}), ledger(another))).runs == ()


def away() -> ServiceError:
    return ServiceError("The services do not answer.")


async def test_services_that_are_away_stop_no_books(jobs: list[Job]) -> None:
    runs = await read_receipt_runs(Kept({}, {job.id: [away()] for job in jobs}), ledger(jobs))
    assert (runs.runs, runs.partial, runs.late) == ((), True, True)
    assert runs.source.startswith("no receipts of 3 of 3 jobs")


async def test_one_failure_drops_no_other_receipt(jobs: list[Job]) -> None:
    """It once dropped the receipts of all jobs in the period, which no later run compared."""
    kept = {job.id: receipt_of(job) for job in jobs}
    runs = await read_receipt_runs(Kept(kept, {2: [away()]}), ledger(jobs))
    assert ([run.job_id for run in runs.runs], runs.late) == ([1, 3], True)
    assert not (await read_receipt_runs(Kept(kept), ledger(jobs))).late


@pytest.mark.parametrize("status", [429, 503])
async def test_busy_services_are_asked_again(jobs: list[Job], status: int) -> None:
    busy = error_of(Answer(status, httpx.Headers({"Retry-After": "0"}), b""))
    assert isinstance(busy, ServiceError)
    runs = await read_receipt_runs(Kept({1: receipt_of(jobs[0])}, {1: [busy, busy]}), ledger(jobs))
    assert ([run.job_id for run in runs.runs], runs.late) == ([1], False)


async def test_refused_access_is_not_taken_for_an_outage(jobs: list[Job]) -> None:
    with pytest.raises(AccessDenied):
        await read_receipt_runs(Kept({}, {2: [AccessDenied("not the operator")]}), ledger(jobs))


async def test_a_period_without_its_receipts_is_not_compared_yet() -> None:
    """A bill with five minutes too much, and services that are away: the period was passed for good."""
    made = history(replace(BASE, ran_s=90))
    bill_more(made, 5)
    books = made.ledger()
    runs = await read_receipt_runs(Kept({}, {one.job_id: [away()] for one in books.settlements}), books)
    result = reconcile("grid", books, made.span, runs=runs)
    assert result.undecided
    assert "reads the period again" in result.message
    read = Runs(tuple(made.runs), complete=False, partial=True)
    assert not reconcile("grid", books, made.span, runs=read).undecided
