"""The errors that only the client raises, and notes on calls that were interrupted. The others: `deepgrid.errors`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from deepgrid.errors import GridError, InputError
from deepgrid.lifecycle.states import JobStatus

if TYPE_CHECKING:
    from deepgrid.client.job import AsyncJob


class JobError(GridError):
    """A job did not finish successfully.

    Attributes:
        job: The job, an `AsyncJob` or a `Job`.
    """

    def __init__(self, message: str, job: Any, *, next_step: str = "") -> None:
        super().__init__(message, next_step=next_step)
        self.job = job


class JobFailed(JobError):
    """A job failed.

    Attributes:
        exit_code: The job's exit status, 128 + signal for a job that a signal ended; None if it never ran.
        signal: The signal that ended the job; None if it ended by itself or never ran.
        last_lines: The last lines of its output; empty if its output is not stored.
    """

    def __init__(
        self, message: str, job: Any, *, exit_code: int | None, signal: int | None, last_lines: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, job, next_step=f"Read its output: `dps job logs {job.id}`.")
        self.exit_code = exit_code
        self.signal = signal
        self.last_lines = last_lines


class JobCancelled(JobError):
    """The customer cancelled the job."""


class OutOfCredits(JobError):
    """The job used up the credits that were locked for it."""


class JobPanicked(JobError):
    """The grid ended the job with a full refund, for example because its cluster did not report."""


class WaitTimeout(GridError):
    """The time limit of a wait is over. The job continues.

    Attributes:
        job: The job, or the job set.
    """

    transient = True

    def __init__(self, message: str, job: Any) -> None:
        super().__init__(message, next_step="Wait again, or cancel it.")
        self.job = job


class QuoteExpired(InputError):
    """A quote is too old, or a price rose since it was made. Nothing was locked."""


class IdempotencyConflict(InputError):
    """An idempotency key was used before, with another definition. Nothing was locked."""


class NoOutput(GridError):
    """The job's workflow names no output that can be downloaded."""


def error_of(job: AsyncJob, last_lines: tuple[str, ...]) -> JobError:
    """Return the error of a job that is over and did not finish."""
    words = f"Job {job.id} is {job.status.words}" + (f": {job.outcome}" if job.outcome else "")
    message = f"{words.rstrip('.')}."
    match job.status:
        case JobStatus.FAILED:
            signal = job.on_chain.exit_status & 0x7F
            return JobFailed(message, job, exit_code=job.exit_code, signal=signal or None, last_lines=last_lines)
        case JobStatus.CANCELLED:
            return JobCancelled(message, job)
        case JobStatus.OUT_OF_CREDITS:
            return OutOfCredits(message, job, next_step="Submit it with more credits, or top it up while it runs.")
        case _:
            return JobPanicked(message, job, next_step="Submit it again; all its credits came back.")


@contextmanager
def note_interruption(words: str) -> Iterator[None]:
    """Add a note to a cancellation, which a traceback shows as its last line. `Grid` moves it to KeyboardInterrupt."""
    try:
        yield
    except asyncio.CancelledError as error:
        error.add_note(words)
        raise


def how_to_continue(job_id: int) -> str:
    """Return how to continue with a job after an interrupted wait."""
    again = f"wait for it again with `grid.job({job_id}).wait()`, or look at `dps job get {job_id}`"
    return f"Job {job_id} continues; {again}."


def limit_words(limit: object) -> str:
    """Return a time limit with its unit, as a user wrote it: `0.5 s`, `2h`."""
    return f"{limit:g} s" if isinstance(limit, int | float) else str(limit)
