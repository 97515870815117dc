"""How a job's end becomes the exit status of `dps`, and how people read it."""

from __future__ import annotations

from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus

# Where the job itself left no status: 124 as timeout(1) has it, the others beside it.
WITHOUT_STATUS = {
    JobStatus.FINISHED: 0,
    JobStatus.FAILED: 1,
    JobStatus.PANICKED: 123,
    JobStatus.OUT_OF_CREDITS: 124,
    JobStatus.CANCELLED: 125,
}


def exit_status_of(job: Job) -> int:
    """The exit status that stands for a job that is over: its own, or one for the way it ended."""
    return own_exit_status(job.exit_status) or WITHOUT_STATUS[job.status]


def own_exit_status(wait_status: int) -> int:
    """A shell's exit status from Slurm's wait status: 768 -> 3, 9 -> 137 (128 + signal)."""
    signal = wait_status & 0x7F
    return 128 + signal if signal else (wait_status >> 8) & 0xFF


def exit_words(job: Job) -> str:
    """`exit status 3`, `killed by signal 9`, or nothing where the job never ran or ended well."""
    signal = job.exit_status & 0x7F
    if signal:
        return f"killed by signal {signal}"
    if job.exit_status or job.status is JobStatus.FINISHED:
        return f"exit status {own_exit_status(job.exit_status)}"
    return ""
