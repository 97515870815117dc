"""The end of a job as values and errors: its bill, and the error of a job that did not finish."""

from __future__ import annotations

from typing import Any

from deepgrid.billing.formulas import bill
from deepgrid.client.display.exits import own_exit_status
from deepgrid.client.display.story import outcome
from deepgrid.client.errors import JobCancelled, JobError, JobFailed, JobPanicked, OutOfCredits
from deepgrid.client.values.amounts import credits_of
from deepgrid.client.values.returned import Bill
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus


def bill_of(job: Job) -> Bill:
    """The bill of a job that is over. Its cost is the contract's; the division is by the contract's formula."""
    rate, cost = job.rate_wei_per_minute, job.final_cost_wei
    minutes = -(-cost // rate) if rate else None  # a last minute that the credits did not cover is billed in part
    parts = bill(minutes or 0, rate, job.locked_wei, job.cut_percent)
    return Bill(
        rate=credits_of(rate), minutes=minutes, cost=credits_of(cost), to_provider=credits_of(parts.paid),
        platform_cut=credits_of(parts.cut), refund=credits_of(job.locked_wei - cost), locked=credits_of(job.locked_wei),
    )  # fmt: skip


def error_of(handle: Any, job: Job, last_lines: tuple[str, ...]) -> JobError:
    """The error of a job that is over and did not finish. `handle` is the client's job."""
    words = f"Job {job.id} is {job.status.words}" + (f": {how}" if (how := outcome(job)) else "")
    message = f"{words.rstrip('.')}."
    match job.status:
        case JobStatus.FAILED:
            signal = job.exit_status & 0x7F
            code = own_exit_status(job.exit_status) if job.exit_status else None
            return JobFailed(message, handle, exit_code=code, signal=signal or None, last_lines=last_lines)
        case JobStatus.CANCELLED:
            return JobCancelled(message, handle)
        case JobStatus.OUT_OF_CREDITS:
            return OutOfCredits(message, handle, next_step="Submit it with more credits, or top it up while it runs.")
        case _:
            return JobPanicked(message, handle, next_step="Submit it again; all its credits came back.")
