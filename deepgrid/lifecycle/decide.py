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
from deepgrid.lifecycle.ends import (
    CANCELLED_BY_SITE,
    ENDS,
    FAILED_LAUNCH,
    REQUEUED,
    End,
    end_of,
    is_free_launch_failure,
)
from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.lifecycle.minutes import minutes_begun, started_minutes
from deepgrid.lifecycle.pending_reasons import DEFAULT_PATIENCE, SHARED_LIMIT, UNKNOWN, Patience, pending_reason
from deepgrid.lifecycle.slurm_state import Phase, SlurmJob
from deepgrid.lifecycle.states import JobStatus

LOST_GRACE_S = 60
LOST = "the cluster lost the job: neither its queue nor its records know it"


@dataclass(frozen=True, slots=True)
class Attempt:
    """Result of this carrier's own attempt to submit.

    `unfit`: this cluster cannot run the job, another may. `unusable`: no cluster can run it. `limited`: the account has
    as many jobs in Slurm as it may submit. All empty: Slurm has the job.
    """

    unfit: str = ""
    unusable: str = ""
    limited: bool = False


@dataclass(frozen=True, slots=True)
class Observation:
    """The input of a decision. `now` and Slurm's times are unix seconds by the cluster's clock.

    `absent_s`: seconds since Slurm had a trace of the job; None while there is one.
    `limit_minutes`: the time limit that this carrier gave the job; None when another carrier did.
    `limit_is_final`: Slurm has refused to raise the limit.
    `launch_failures`: number of the customer's other jobs that ended here within a day by a failed launch.
    `pending_s`: for how long Slurm's reason has had its present outlook, or the job has waited for room in a limit of
    submitted jobs; `patience` limits that.
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
    pending_s: float = 0.0
    patience: Patience = DEFAULT_PATIENCE

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
        return CancelAtSlurm(REQUEUED.error)
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
        why = _why_not_waiting(seen)
        return Refuse(why) if why else _extend_or_wait(seen, Awaited.START)
    if slurm.phase is Phase.RUNNING:
        return ReportRunning(_elapsed(seen))
    if attempt is not None and attempt.limited:
        too_long = seen.pending_s >= seen.patience.room_s
        return Refuse(SHARED_LIMIT.customer) if too_long else Wait(Awaited.ROOM)
    if attempt is not None:
        return _lost_or_wait(seen)
    if seen.job.granted_minutes < 1:
        return Settle(JobStatus.FAILED, 0, error="the locked credits buy less than a minute here", tombstone=True)
    return Submit()


def _why_not_waiting(seen: Observation) -> str:
    """Return why the queued job is given back; empty while it may wait."""
    reason = pending_reason(seen.slurm.reason)
    patience_s = seen.patience.with_outlook(reason.outlook)
    if patience_s is None or seen.pending_s < patience_s:
        return ""
    return f"{reason.customer} ({seen.slurm.reason})" if reason is UNKNOWN else reason.customer


def _ended_before_running_was_reported(seen: Observation) -> Action:
    slurm = seen.slurm
    if slurm.started_at is None:
        if seen.job.has_cancel_request:
            return _cancelled(seen)
        return Refuse(_sentence("the cluster did not start the job", slurm))
    if _fault(seen):
        return _end(seen)
    if slurm.stopped and not seen.job.has_cancel_request:  # it began just when this cluster gave it back
        end = CANCELLED_BY_SITE
        return Settle(end.status, 0, slurm.exit_status, end.error, tombstone=True)
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
    if fault := _fault(seen):  # Slurm may queue the job again, so a tombstone bars that
        return Settle(fault.status, 0, slurm.exit_status, fault.error, tombstone=True)
    if slurm.started_at is None or slurm.ended_at is None:
        if seen.job.has_cancel_request:
            return _cancelled(seen)
        return Settle(JobStatus.FAILED, 0, slurm.exit_status, _sentence("the cluster never started the job", slurm))
    ran = minutes_begun(slurm.run_s)
    granted = seen.job.granted_minutes
    limit = granted if seen.limit_minutes is None else min(granted, seen.limit_minutes)
    is_early = ran < limit and not seen.limit_is_final
    end = end_of(slurm, cancel_requested=seen.job.has_cancel_request, before_its_limit=is_early)
    if end is None:
        return Wait(Awaited.END)
    minutes = min(ran, granted) if end.billed else 0
    again = end is REQUEUED or not end.billed
    return Settle(end.status, minutes, slurm.exit_status, end.error, tombstone=again)


def _fault(seen: Observation) -> End | None:
    """Return the end, if it is the cluster's fault even for a job without a known run."""
    if seen.slurm.state == "CANCELLED" and seen.job.has_cancel_request:
        return None
    if is_free_launch_failure(seen.slurm, seen.launch_failures):
        return FAILED_LAUNCH
    end = ENDS.get(seen.slurm.state)
    return None if end is None or end.billed else end


def _elapsed(seen: Observation) -> int:
    started_at = seen.slurm.started_at
    return 0 if started_at is None else started_minutes(started_at, seen.now)


def _sentence(what: str, slurm: SlurmJob) -> str:
    detail = slurm.reason if slurm.reason not in ("", "None") else slurm.state
    return f"{what} ({detail})" if detail else what
