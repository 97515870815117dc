"""Finds zombies, and Slurm jobs that are left over. Pure: chain and Slurm states are arguments.

A zombie is hot on chain and was submitted to Slurm, but Slurm no longer knows it. `decide` chooses the
action for a zombie, as for a carrier, so that the two never disagree. This module only selects the
claims to examine without a carrier. Absence counts when it was seen twice, a grace period apart.
"""

from __future__ import annotations

from deepgrid.lifecycle.actions import Action, Refuse, ReportRunning, Settle
from deepgrid.lifecycle.decide import Observation, decide
from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.lifecycle.slurm_state import Phase, SlurmJob
from deepgrid.lifecycle.states import JobStatus

DAY_S = 86400


def is_suspect(job: Job, slurm: SlurmJob, *, submitted: bool) -> bool:
    """Return whether a claim must be examined again: it is hot on chain, and Slurm does not have it.

    `submitted` says whether Slurm ever accepted it. A claimed job that was not submitted yet is not a zombie: its run
    continues. A job for which Slurm did not answer is not one either.
    """
    if not job.status.claimed or slurm.phase not in (Phase.ABSENT, Phase.ENDED):
        return False
    return submitted or job.status is JobStatus.RUNNING or slurm.phase is Phase.ENDED


def put_right_by(seen: Observation) -> Settle | ReportRunning | Refuse | None:
    """Return the next action for a suspect at its second look; None when there is nothing to do now.

    A job that has ended is settled by its end. A job that is still absent after the grace period is PANICKED.
    """
    if seen.slurm.phase not in (Phase.ABSENT, Phase.ENDED):
        return None
    action: Action = decide(seen)
    return action if isinstance(action, Settle | ReportRunning | Refuse) else None


def is_left_over(key: JobKey, job: Job, slurm: SlurmJob) -> bool:
    """Return whether Slurm still has a job whose claim is over: cold on chain, or given back."""
    if slurm.phase not in (Phase.QUEUED, Phase.RUNNING) or slurm.state == "COMPLETING":
        return False
    return is_over(key, job)


def is_over(key: JobKey, job: Job) -> bool:
    """Return whether the claim is over: its job is cold, or was given back."""
    return not job.status.claimed or job.claimed_at != key.claimed_at


def why_over(key: JobKey, job: Job) -> str:
    """Return how a claim that is over ended, in words."""
    if job.status.cold and job.claimed_at == key.claimed_at:
        return f"job {job.id} is {job.status.words}"
    return f"the claim of job {job.id} was taken back"


def is_long_over(key: JobKey, job: Job, now: int, days: int) -> bool:
    """Return whether the claim has been over for this long. A claim that was given back counts from its own time.

    `now` is unix seconds by the chain's clock.
    """
    ended_at = job.ended_at if job.status.cold and job.claimed_at == key.claimed_at else key.claimed_at
    return is_over(key, job) and now - ended_at >= days * DAY_S
