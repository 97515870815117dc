"""The decision about a claimed job: chain state x Slurm state -> next action.

Pure: time and the carrier's own attempts are arguments. The result is always the missing step, never
one that was done already. So a run can be killed, retried or taken over at any point. Absence is not
proof: "no trace" of a job counts only after a grace period.
"""

from __future__ import annotations

from dataclasses import dataclass

from deepgrid.lifecycle.actions import (
    Action,
    Awaited,
    CancelAtSlurm,
    Done,
    ExtendLimit,
    Refuse,
    ReportRunning,
    Settle,
    Submit,
    Wait,
)
from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.lifecycle.minutes import minutes_begun, started_minutes
from deepgrid.lifecycle.slurm_state import Phase, SlurmJob
from deepgrid.lifecycle.states import JobStatus

LOST_GRACE_S = 60
LOST = "the cluster lost the job: neither its queue nor its records know it"

# Slurm's final states that are the cluster's fault. They are never billed (rule 3 of the contracts).
FAULTS = {"NODE_FAIL": "a node of the cluster failed", "BOOT_FAIL": "a node of the cluster did not boot",
          "PREEMPTED": "the cluster preempted the job",
          "REVOKED": "another cluster of the site took the job"}  # fmt: skip
LAUNCH_FAILURES = frozenset({"JobLaunchFailure", "launch_failed_requeued_held"})
LAUNCH_FAILURE = "the cluster could not launch the job"
# A job's own account can make Slurm report a failed launch at any time. A failed launch counts as the cluster's fault
# only this soon after the start, without a sign that the script ran, and only this often per customer and day.
LAUNCH_FAILS_WITHIN_S = 60
FREE_LAUNCH_FAILURES = 2
HAD_RUN = "Slurm reports a failed launch, which counts as a run"
REQUEUED = "the job was queued again after it had started; a job runs once"
# Slurm's reasons that keep a job in the queue forever.
HOPELESS = {"PartitionTimeLimit": "the cluster's partition does not allow jobs of that length",
            "PartitionNodeLimit": "the cluster's partition does not allow jobs of that size",
            "BadConstraints": "the cluster has no nodes of that kind",
            "launch_failed_requeued_held": LAUNCH_FAILURE}  # fmt: skip
# Slurm's final states that are the job's own end. The run time is billed.
ENDS = {
    "COMPLETED": (JobStatus.FINISHED, ""),
    "FAILED": (JobStatus.FAILED, ""),
    "TIMEOUT": (JobStatus.OUT_OF_CREDITS, ""),
    "OUT_OF_MEMORY": (JobStatus.FAILED, "the job needed more memory than it asked for"),
    "DEADLINE": (JobStatus.FAILED, "the job reached its deadline"),
}


@dataclass(frozen=True, slots=True)
class Attempt:
    """Result of this carrier's own attempt to submit.

    `unfit`: this cluster cannot run the job, another may. `unusable`: no cluster can run it.
    Both empty: Slurm has the job.
    """

    unfit: str = ""
    unusable: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """The input of a decision. `now` and Slurm's times are unix seconds by the cluster's clock.

    `absent_s`: seconds since Slurm had a trace of the job; None while there is one.
    `limit_minutes`: the time limit that this carrier gave the job; None when another carrier did.
    `limit_is_final`: Slurm has refused to raise the limit.
    `launch_failures`: number of the customer's other jobs that ended here within a day by a failed launch.
    """

    key: JobKey
    me: str
    job: Job
    slurm: SlurmJob
    now: int
    attempt: Attempt | None = None
    absent_s: float | None = None
    limit_minutes: int | None = None
    limit_is_final: bool = False
    grace_s: int = LOST_GRACE_S
    launch_failures: int = 0

    @property
    def alive_at_slurm(self) -> bool:
        return self.slurm.phase in (Phase.QUEUED, Phase.RUNNING)

    @property
    def is_foreign(self) -> bool:
        """Whether the job is not, or no longer, claimed by this claim."""
        job = self.job
        ours = job.provider is not None and job.provider.lower() == self.me.lower()
        return not ours or job.claimed_at != self.key.claimed_at or job.status < JobStatus.SCHEDULED


def decide(seen: Observation) -> Action:
    """Return the next action for a claim. Every `Wait` names what it waits for."""
    if seen.is_foreign:
        return _leave(seen, "this claim is no longer ours")
    if seen.job.status.cold:
        return _leave(seen, f"the job is {seen.job.status.words}")
    if seen.slurm.phase is Phase.UNKNOWN:
        return Wait(Awaited.SLURM)
    if seen.slurm.requeued and seen.alive_at_slurm:
        return CancelAtSlurm(REQUEUED)
    if seen.job.status is JobStatus.SCHEDULED:
        return _scheduled(seen)
    return _running(seen)


def _leave(seen: Observation, why: str) -> Action:
    if seen.slurm.phase is Phase.UNKNOWN:
        return Wait(Awaited.SLURM)
    return CancelAtSlurm(why) if seen.alive_at_slurm else Done(why)


def _scheduled(seen: Observation) -> Action:
    slurm, attempt = seen.slurm, seen.attempt
    if attempt is not None and attempt.unusable:
        return Settle(JobStatus.FAILED, 0, error=attempt.unusable, tombstone=True)
    if attempt is not None and attempt.unfit and not seen.alive_at_slurm:
        return Refuse(attempt.unfit)
    if slurm.phase is Phase.ENDED:
        return _ended_before_running_was_reported(seen)
    if seen.job.has_cancel_request:
        return _cancel(seen)
    if slurm.phase is Phase.QUEUED:
        hopeless = HOPELESS.get(slurm.reason.replace(" ", "_"))
        return Refuse(hopeless) if hopeless else _extend_or_wait(seen, Awaited.START)
    if slurm.phase is Phase.RUNNING:
        return ReportRunning(_elapsed(seen))
    if attempt is not None:
        return _lost_or_wait(seen)
    if seen.job.granted_minutes < 1:
        return Settle(JobStatus.FAILED, 0, error="the locked credits buy less than a minute here", tombstone=True)
    return Submit()


def _ended_before_running_was_reported(seen: Observation) -> Action:
    slurm = seen.slurm
    if slurm.started_at is None:
        if seen.job.has_cancel_request:
            return _cancelled(seen)
        return Refuse(_sentence("the cluster did not start the job", slurm))
    if _fault(seen):
        return _end(seen)
    return ReportRunning(_elapsed(seen))


def _running(seen: Observation) -> Action:
    if seen.slurm.phase is Phase.ENDED:
        return _end(seen)
    if seen.job.has_cancel_request and (seen.alive_at_slurm or seen.slurm.stopped):
        return _cancel(seen)
    if seen.slurm.phase is Phase.ABSENT:
        return _lost_or_wait(seen)
    return _extend_or_wait(seen, Awaited.END)


def _extend_or_wait(seen: Observation, awaited: Awaited) -> Action:
    """Raise the time limit when the credits buy more than Slurm gives. A limit is never lowered."""
    known = max(seen.limit_minutes or 0, seen.slurm.limit_minutes or 0)
    if seen.job.granted_minutes > known and not seen.limit_is_final:
        return ExtendLimit(seen.job.granted_minutes)
    return Wait(awaited)


def _cancel(seen: Observation) -> Action:
    return CancelAtSlurm("the customer cancelled the job") if seen.alive_at_slurm else _cancelled(seen)


def _cancelled(seen: Observation) -> Settle:
    return Settle(JobStatus.CANCELLED, 0, tombstone=True)


def _lost_or_wait(seen: Observation) -> Action:
    if seen.absent_s is None or seen.absent_s < seen.grace_s:
        return Wait(Awaited.TRACE)
    return Settle(JobStatus.PANICKED, 0, error=seen.slurm.reason or LOST, tombstone=True)


def _end(seen: Observation) -> Action:
    slurm = seen.slurm
    if fault := _fault(seen):
        return Settle(JobStatus.FAILED, 0, slurm.exit_status, fault, tombstone=True)  # Slurm may queue it again
    if slurm.started_at is None or slurm.ended_at is None:
        if seen.job.has_cancel_request:
            return _cancelled(seen)
        return Settle(JobStatus.FAILED, 0, slurm.exit_status, _sentence("the cluster never started the job", slurm))
    ran_s = slurm.ended_at - slurm.started_at if slurm.ran_s is None else slurm.ran_s
    minutes = min(minutes_begun(ran_s), seen.job.granted_minutes)
    if slurm.requeued:
        return Settle(JobStatus.FAILED, minutes, slurm.exit_status, REQUEUED, tombstone=True)
    if slurm.state == "CANCELLED":
        # A cancel request that was carried out counts, even when a reorganisation drops it from the chain.
        asked = seen.job.has_cancel_request or slurm.stopped
        status = JobStatus.CANCELLED if asked else JobStatus.FAILED
        return Settle(status, minutes, slurm.exit_status, "" if asked else "cancelled at the cluster")
    if slurm.state not in ENDS:
        return Wait(Awaited.END)
    status, error = ENDS[slurm.state]
    if slurm.reason in LAUNCH_FAILURES:
        error = HAD_RUN
    return Settle(status, minutes, slurm.exit_status, error)


def is_free_launch_failure(slurm: SlurmJob, launch_failures: int) -> bool:
    """Return whether Slurm could not launch the job. False where the job's own account could have faked the failure."""
    if slurm.reason not in LAUNCH_FAILURES or slurm.began or slurm.requeued:
        return False
    if slurm.started_at is None or slurm.ended_at is None:
        return True
    ran_s = slurm.ended_at - slurm.started_at if slurm.ran_s is None else slurm.ran_s
    return ran_s <= LAUNCH_FAILS_WITHIN_S and launch_failures < FREE_LAUNCH_FAILURES


def _fault(seen: Observation) -> str:
    if is_free_launch_failure(seen.slurm, seen.launch_failures):
        return LAUNCH_FAILURE
    return FAULTS.get(seen.slurm.state, "")


def _elapsed(seen: Observation) -> int:
    started_at = seen.slurm.started_at
    return 0 if started_at is None else started_minutes(started_at, seen.now)


def _sentence(what: str, slurm: SlurmJob) -> str:
    detail = slurm.reason if slurm.reason not in ("", "None") else slurm.state
    return f"{what} ({detail})" if detail else what
