"""How a job ended, in words. Slurm's wait status is an exit code or a signal."""

from __future__ import annotations

from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus


def own_exit_status(wait_status: int) -> int:
    """Return a shell's exit status from Slurm's wait status: 768 -> 3, 9 -> 137 (128 + signal)."""
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


def outcome(job: Job) -> str:
    """Return how a job ended: its exit status, and the reported error."""
    return ": ".join(part for part in (exit_words(job), job.last_error) if part)
