"""Computes the expected settlement of a run, minutes and money, by the contract's rules. Pure.

The rules are `MetaScheduler._billableMinutes` and `Escrow._end` of the contracts (docs/explanation/contracts.md). A
supervisor reports the started minutes in Slurm's record, but no more than were bought. The contract also bills no more
than passed by its own clock. The expectation does not: otherwise a job could be settled early and run on unnoticed.
"""

from __future__ import annotations

from deepgrid.billing.entries import Run
from deepgrid.billing.formulas import Bill, bill
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.minutes import elapsed_minutes, minutes_begun, started_minutes


def run_minutes(run: Run | None) -> int:
    """Started minutes of a run; 0 if it never started, or has not ended."""
    if run is None or run.started_at is None or run.ended_at is None:
        return 0
    return started_minutes(run.started_at, run.ended_at) if run.ran_s is None else minutes_begun(run.ran_s)


def releasable_wei(job: Job, *, answer_minutes: int, fee_minutes: int) -> int:
    """Return the wei that a repeated cancel returns once the cluster's answer is due: no report can bill them then.

    0 if it returned them already, or if the answer is due after the bought time.
    """
    answer_due = job.cancel_requested_at + 60 * answer_minutes
    minutes = max(elapsed_minutes(job.started_at or job.claimed_at, answer_due), fee_minutes)
    return bill(minutes, job.rate_wei_per_minute, job.held_wei, job.cut_percent).refunded


def expected_bill(job: Job, billed_minutes: int) -> Bill:
    """Return the contract's division of the locked credits, for the billed minutes."""
    return bill(billed_minutes, job.rate_wei_per_minute, job.locked_wei, job.cut_percent)
