"""Which claims are zombies, and which Slurm jobs are left over. Pure: what chain and Slurm say is an argument.

A zombie is hot on chain, was handed to Slurm, and Slurm no longer knows it. What is done about one is
`decide`'s to say, as for a carrier, so that the two never disagree; the rule here only says which claims
are looked at by whoever does not carry them. Absence counts when it was seen twice, a grace apart.
"""

from __future__ import annotations

import re

from deepgrid.lifecycle.actions import Action, Refuse, ReportRunning, Settle
from deepgrid.lifecycle.decide import Observation, decide
from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.lifecycle.slurm_state import Phase, SlurmJob
from deepgrid.lifecycle.states import JobStatus

_COMMENT = re.compile(r"deepgrid:\d+:[0-9a-f]{8}:(\d+):(\d+)")
DAY_S = 86400


def is_suspect(job: Job, slurm: SlurmJob, *, submitted: bool) -> bool:
    """Whether a claim must be looked at again: the chain says that it goes on, and Slurm does not hold it.

    `submitted` says whether Slurm ever took it. A job that was claimed and not submitted yet is no
    zombie: its run is to go on. What Slurm did not answer for is none either.
    """
    if not job.status.claimed or slurm.phase not in (Phase.ABSENT, Phase.ENDED):
        return False
    return submitted or job.status is JobStatus.RUNNING or slurm.phase is Phase.ENDED


def put_right_by(seen: Observation) -> Settle | ReportRunning | Refuse | None:
    """The next step for a suspect that was looked at again; None when nothing is to be done for it now.

    A job that ended meanwhile is settled as it ended; one that is still absent after the grace is PANICKED.
    """
    if seen.slurm.phase not in (Phase.ABSENT, Phase.ENDED):
        return None
    action: Action = decide(seen)
    return action if isinstance(action, Settle | ReportRunning | Refuse) else None


def key_of_comment(comment: str, like: JobKey) -> JobKey | None:
    """The claim of a Slurm job's comment; None when it is of another chain or contract than `like`."""
    found = _COMMENT.fullmatch(comment)
    if found is None:
        return None
    key = JobKey(like.chain_id, like.contract, int(found[1]), int(found[2]))
    return key if key.comment == comment else None


def is_left_over(key: JobKey, job: Job, slurm: SlurmJob) -> bool:
    """Whether Slurm still holds a job whose claim is over: cold on chain, or given back since."""
    if slurm.phase not in (Phase.QUEUED, Phase.RUNNING) or slurm.state == "COMPLETING":
        return False
    return is_over(key, job)


def is_over(key: JobKey, job: Job) -> bool:
    """Whether nothing is done any more for this claim: its job is cold, or was given back since."""
    return not job.status.claimed or job.claimed_at != key.claimed_at


def is_long_over(key: JobKey, job: Job, now: int, days: int) -> bool:
    """Whether the claim has been over for so long; one that was given back counts from when it was made.

    `now` is unix seconds by the chain's clock.
    """
    ended_at = job.ended_at if job.status.cold and job.claimed_at == key.claimed_at else key.claimed_at
    return is_over(key, job) and now - ended_at >= days * DAY_S
