"""The operator reads the runs that providers signed, and only those."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deepgrid.billing.entries import Allocation, Ledger, Run, Settlement
from deepgrid.errors import NotFound, ServiceError
from deepgrid.lifecycle.job import Job
from deepgrid.operator.receipt_runs import UNREAD, read_receipt_runs
from tests.services.receipt_support import receipt_of, settled_job
from tests.services.support import MemoryChain


class Kept:
    """Receipts of some jobs."""

    def __init__(self, receipts: dict[int, bytes], *, away: bool = False) -> None:
        self._receipts = receipts
        self._away = away

    async def receipt(self, job_id: int) -> bytes:
        if self._away:
            raise ServiceError("The services do not answer.")
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


async def test_services_that_are_away_stop_no_books(jobs: list[Job]) -> None:
    runs = await read_receipt_runs(Kept({}, away=True), ledger(jobs))
    assert (runs.runs, runs.source, runs.partial) == ((), UNREAD, True)
