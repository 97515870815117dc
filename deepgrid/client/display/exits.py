"""Maps the end of a job to an exit status of `dps`, and to words."""

from __future__ import annotations

from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus

# For jobs without an exit status of their own. 124 is that of timeout(1); the others are next to it.
WITHOUT_STATUS = {
    JobStatus.FINISHED: 0,
    JobStatus.FAILED: 1,
    JobStatus.PANICKED: 123,
    JobStatus.OUT_OF_CREDITS: 124,
    JobStatus.CANCELLED: 125,
}


def exit_status_of(job: Job) -> int:
    """The exit status for a job that is over: its own, or one for its final state."""
    return own_exit_status(job.exit_status) or WITHOUT_STATUS[job.status]


def own_exit_status(wait_status: int) -> int:
    """A shell's exit status from Slurm's wait status: 768 -> 3, 9 -> 137 (128 + signal)."""
    signal = wait_status & 0x7F
    return 128 + signal if signal else (wait_status >> 8) & 0xFF


def exit_words(job: Job) -> str:
    """`exit status 3`, `killed by signal 9`, or empty if the job never ran and did not finish."""
    signal = job.exit_status & 0x7F
    if signal:
        return f"killed by signal {signal}"
    if job.exit_status or job.status is JobStatus.FINISHED:
        return f"exit status {own_exit_status(job.exit_status)}"
    return ""
