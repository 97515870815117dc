"""How a job can end, whose fault each end is, and who pays. The customer pays for what the job did.

An end is free only if Slurm or the supervisor can know that the site caused it. What the job's own account could have
caused or faked is billed. docs/explanation/billing.md lists how each end is known, and its test.
"""

from __future__ import annotations

from dataclasses import dataclass

from deepgrid.lifecycle.pending_reasons import LAUNCH_FAILURE
from deepgrid.lifecycle.slurm_state import SlurmJob
from deepgrid.lifecycle.states import JobStatus

LAUNCH_FAILURES = frozenset({"JobLaunchFailure", "launch_failed_requeued_held"})
# A job's own account can make Slurm report a failed launch at any time. A failed launch counts as the cluster's fault
# only this soon after the start, without a sign that the script ran, and only this often per customer and day.
LAUNCH_FAILS_WITHIN_S = 60
FREE_LAUNCH_FAILURES = 2

MONEY_ENDING = "money-ending"  # the kind of a cluster's notice before the bought time of a job ends


@dataclass(frozen=True, slots=True)
class End:
    """What an end means: the job's status, whether its run is billed, what the customer reads, and a tag for filters.

    An end that is not billed is the cluster's fault.
    """

    status: JobStatus
    billed: bool
    error: str = ""
    tag: str = ""


# By Slurm's final state. CANCELLED is not here: it depends on who cancelled the job.
ENDS = {
    "COMPLETED": End(JobStatus.FINISHED, billed=True),
    "FAILED": End(JobStatus.FAILED, billed=True),
    "TIMEOUT": End(JobStatus.OUT_OF_CREDITS, billed=True),
    "OUT_OF_MEMORY": End(
        JobStatus.FAILED, billed=True, error="the job needed more memory than it asked for", tag="out-of-memory"
    ),
    "DEADLINE": End(JobStatus.FAILED, billed=True, error="the job reached its deadline", tag="deadline"),
    "NODE_FAIL": End(JobStatus.FAILED, billed=False, error="a node of the cluster failed", tag="node-failure"),
    "BOOT_FAIL": End(JobStatus.FAILED, billed=False, error="a node of the cluster did not boot", tag="node-failure"),
    "PREEMPTED": End(JobStatus.FAILED, billed=False, error="the cluster preempted the job", tag="preempted"),
    "REVOKED": End(JobStatus.FAILED, billed=False, error="another cluster of the site took the job", tag="revoked"),
}
FAILED_LAUNCH = End(JobStatus.FAILED, billed=False, error=LAUNCH_FAILURE, tag="launch-failure")
HAD_RUN = End(JobStatus.FAILED, billed=True, error="Slurm reports a failed launch, which counts as a run")
REQUEUED = End(
    JobStatus.FAILED,
    billed=True,
    error="the job was queued again after it had started; a job runs once",
    tag="requeued",
)
CANCELLED_BY_CUSTOMER = End(JobStatus.CANCELLED, billed=True)
CANCELLED_BY_SITE = End(JobStatus.FAILED, billed=False, error="the cluster cancelled the job", tag="cancelled-by-site")
CANCELLED_BY_ITSELF = End(JobStatus.FAILED, billed=True, error="cancelled at the cluster")
ENDED_EARLY = End(JobStatus.FAILED, billed=True, error="the cluster ended the job before its time", tag="ended-early")
OTHERS = (
    FAILED_LAUNCH,
    HAD_RUN,
    REQUEUED,
    CANCELLED_BY_CUSTOMER,
    CANCELLED_BY_SITE,
    CANCELLED_BY_ITSELF,
    ENDED_EARLY,
)
ALL_ENDS = (*ENDS.values(), *OTHERS)
RETRIED = (REQUEUED, ENDED_EARLY)  # billed, because the job may have caused them, but a second attempt may succeed
BY_ERROR = {end.error: end for end in ALL_ENDS if end.error}


def was_not_the_programs(status: JobStatus, error: str) -> bool:
    """Return whether a job with this final status and error failed for another reason than its program."""
    ends = [end for end in ALL_ENDS if end.error and (not end.billed or end in RETRIED)]
    return status is JobStatus.FAILED and any(error.startswith(end.error) for end in ends)


def is_fault(state: str) -> bool:
    """Return whether this final state of Slurm is the cluster's fault in any case."""
    return state in ENDS and not ENDS[state].billed


def end_of(slurm: SlurmJob, *, cancel_requested: bool, before_its_limit: bool) -> End | None:
    """Return the meaning of the end of a job that had started. None if Slurm's state is not known here."""
    if slurm.requeued:
        return REQUEUED
    if slurm.state == "CANCELLED":
        # A cancel request that was carried out counts, even when a reorganisation drops it from the chain.
        if cancel_requested or slurm.stopped:
            return CANCELLED_BY_CUSTOMER
        return CANCELLED_BY_SITE if slurm.cancelled_by_site else CANCELLED_BY_ITSELF
    if slurm.state == "TIMEOUT" and before_its_limit:
        return ENDED_EARLY
    if slurm.state == "FAILED" and slurm.reason in LAUNCH_FAILURES:
        return HAD_RUN
    return ENDS.get(slurm.state)


def may_be_failed_launch(slurm: SlurmJob) -> bool:
    """Return whether Slurm may have failed to launch the job.

    Either Slurm says so, or it cancelled the job as it does after a failed prolog, and no source names the account.
    """
    unknown = slurm.state == "CANCELLED" and slurm.cancelled_by_site is None and not slurm.stopped
    return slurm.reason in LAUNCH_FAILURES or (unknown and slurm.started_at is not None)


def is_free_launch_failure(slurm: SlurmJob, launch_failures: int) -> bool:
    """Return whether Slurm could not launch the job. False where the job's own account could have faked the failure."""
    if not may_be_failed_launch(slurm) or slurm.began or slurm.requeued:
        return False
    if slurm.started_at is None or slurm.ended_at is None:
        return True
    return slurm.run_s <= LAUNCH_FAILS_WITHIN_S and launch_failures < FREE_LAUNCH_FAILURES
