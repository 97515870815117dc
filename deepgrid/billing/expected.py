"""Computes the expected settlement of a run, minutes and money, by the contract's rules. Pure.

The rules are `MetaScheduler._billableMinutes` and `Escrow._end` of the contracts (docs/explanation/contracts.md). A
supervisor reports the started minutes in Slurm's record, but no more than were bought. The contract bills no more than
passed by its own clock.
"""

from __future__ import annotations

from deepgrid.billing.entries import Ledger, Run
from deepgrid.billing.formulas import Bill, bill
from deepgrid.lifecycle.ends import is_fault
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.minutes import minutes_begun, started_minutes
from deepgrid.lifecycle.states import JobStatus


def run_minutes(run: Run | None) -> int:
    """Started minutes of a run; 0 if it never started, or has not ended."""
    if run is None or run.started_at is None or run.ended_at is None:
        return 0
    return started_minutes(run.started_at, run.ended_at) if run.ran_s is None else minutes_begun(run.ran_s)


def expected_minutes(ledger: Ledger, job_id: int, run: Run | None) -> int:
    """Return the minutes that a cold job's settlement should bill for `run`, by the contract's current constants."""
    job = ledger.jobs[job_id]
    if job.started_at == 0 or job.status is JobStatus.PANICKED:
        return 0
    ran = 0 if run is not None and is_fault(run.state) else run_minutes(run)
    until = job.ended_at
    if job.has_cancel_request:
        until = min(until, job.cancel_requested_at + 60 * ledger.claim_timeout_minutes)
    minutes = min(ran, started_minutes(job.started_at, until), job.granted_minutes)
    if job.status is JobStatus.CANCELLED and job.has_cancel_request:
        return max(minutes, min(ledger.cancellation_fee_minutes, job.granted_minutes))
    return minutes


def releasable_wei(job: Job, *, answer_minutes: int, fee_minutes: int) -> int:
    """Return the wei that a repeated cancel returns once the cluster's answer is due: no report can bill them then.

    0 if it returned them already, or if the answer is due after the bought time.
    """
    answer_due = job.cancel_requested_at + 60 * answer_minutes
    minutes = max(started_minutes(job.started_at or job.claimed_at, answer_due), fee_minutes)
    return bill(minutes, job.rate_wei_per_minute, job.held_wei, job.cut_percent).refunded


def expected_bill(job: Job, billed_minutes: int) -> Bill:
    """Return the contract's division of the locked credits, for the billed minutes."""
    return bill(billed_minutes, job.rate_wei_per_minute, job.locked_wei, job.cut_percent)
