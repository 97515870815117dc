"""Detection of zombies, their next actions, and Slurm jobs that are left over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deepgrid.lifecycle.actions import Action, Refuse, ReportRunning, Settle
from deepgrid.lifecycle.decide import LOST, Attempt, Observation, decide
from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.lifecycle.slurm_state import ABSENT, UNKNOWN, Phase, SlurmJob
from deepgrid.lifecycle.states import JobStatus
from deepgrid.lifecycle.zombies import is_left_over, is_suspect, put_right_by
from deepgrid.slurm.observe.verdict import ABSENT_BUT_ACCOUNTED
from tests.lifecycle.support import JOB, KEY, ME, NOW, QUEUED, RUNNING, ended

S, R = JobStatus.SCHEDULED, JobStatus.RUNNING
GRACE_S = 30

SUSPECTS = {
    "running on chain, unknown to Slurm": (R, ABSENT, True, True),
    "running on chain, and the login node forgot that it submitted it": (R, ABSENT, False, True),
    "running on chain, ended at Slurm": (R, ended("COMPLETED"), True, True),
    "submitted, and unknown to Slurm": (S, ABSENT, True, True),
    "submitted, and ended before anybody reported its start": (S, ended("COMPLETED"), True, True),
    "ended, and the answer to its sbatch was lost": (S, ended("COMPLETED"), False, True),
    "claimed and not submitted yet": (S, ABSENT, False, False),
    "waiting in the queue": (S, QUEUED, True, False),
    "running": (R, RUNNING, True, False),
    "Slurm gave no answer for it": (R, UNKNOWN, True, False),
    "accounting knows it as unfinished": (R, ABSENT_BUT_ACCOUNTED, True, False),
    "settled meanwhile": (JobStatus.FINISHED, ABSENT, True, False),
    "given back meanwhile": (JobStatus.PENDING, ABSENT, True, False),
}


@pytest.mark.parametrize("case", SUSPECTS)
def test_suspects(case: str) -> None:
    status, slurm, submitted, expected = SUSPECTS[case]
    assert is_suspect(replace(JOB, status=status), slurm, submitted=submitted) is expected


def again(status: JobStatus, slurm: SlurmJob, absent_for_s: int | None = GRACE_S, **job: object) -> Observation:
    """Return a suspect at its second look. `absent_for_s` is None if it was not absent at the first."""
    changed = replace(JOB, status=status, **job)  # type: ignore[arg-type]
    return Observation(KEY, ME, changed, slurm, NOW, Attempt(), absent_s=absent_for_s, grace_s=GRACE_S)


REFUND = Settle(JobStatus.PANICKED, 0, error=LOST, tombstone=True)
PUT_RIGHT: dict[str, tuple[Observation, Action | None]] = {
    "running and lost": (again(R, ABSENT), REFUND),
    "submitted and lost": (again(S, ABSENT), REFUND),
    "lost while the customer cancels": (again(R, ABSENT, has_cancel_request=True), REFUND),
    "absent for less than the grace": (again(R, ABSENT, GRACE_S - 1), None),
    "ended at the first look, absent at the second": (again(R, ABSENT, None), None),
    "there again": (again(R, RUNNING), None),
    "there again, but waiting": (again(S, QUEUED), None),
    "Slurm does not answer any more": (again(R, UNKNOWN), None),
    "accounting knows it by now": (again(R, ABSENT_BUT_ACCOUNTED), None),
    "ended": (again(R, ended("COMPLETED"), None), Settle(JobStatus.FINISHED, 2)),
    "absent, then an end was recorded": (again(R, ended("FAILED", exit_status=768)), Settle(JobStatus.FAILED, 2, 768)),
    "ended before its start was reported": (again(S, ended("COMPLETED")), ReportRunning(2)),
    "gone from the queue, never started": (
        again(S, SlurmJob(Phase.ENDED, 5, "CANCELLED", None, NOW)),
        Refuse("the cluster did not start the job (CANCELLED)"),
    ),
    "settled by its carrier": (again(JobStatus.FINISHED, ABSENT), None),
    "claimed again": (again(R, ABSENT, claimed_at=JOB.claimed_at + 1), None),
    "somebody else's by now": (again(S, ABSENT, provider="0xB"), None),
}


@pytest.mark.parametrize("case", PUT_RIGHT)
def test_next_action_for_a_suspect(case: str) -> None:
    seen, expected = PUT_RIGHT[case]
    assert put_right_by(seen) == expected


@pytest.mark.parametrize("case", [case for case, (_, action) in PUT_RIGHT.items() if action])
def test_a_carrier_would_do_the_same(case: str) -> None:
    seen, expected = PUT_RIGHT[case]
    assert decide(seen) == expected


LEFT_OVER = {
    "its job is over": (replace(JOB, status=JobStatus.PANICKED), RUNNING, True),
    "its job is over before it started": (replace(JOB, status=JobStatus.CANCELLED), QUEUED, True),
    "its job waits for another cluster": (replace(JOB, status=JobStatus.PENDING, claimed_at=0), RUNNING, True),
    "its job was claimed again": (replace(JOB, claimed_at=JOB.claimed_at + 1), RUNNING, True),
    "it is what its job runs as": (replace(JOB, status=R), RUNNING, False),
    "it waits, as it should": (JOB, QUEUED, False),
    "it is about to go": (replace(JOB, status=JobStatus.FINISHED), replace(RUNNING, state="COMPLETING"), False),
}


@pytest.mark.parametrize("case", LEFT_OVER)
def test_jobs_that_are_left_over(case: str) -> None:
    job, slurm, expected = LEFT_OVER[case]
    assert is_left_over(KEY, job, slurm) is expected


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        (KEY.comment, KEY),
        (KEY.comment.replace("deepgrid:1:", "deepgrid:2:"), None),
        (KEY.comment.replace("abab", "cdcd", 1), None),
        ("deepgrid:1:abababab:7", None),
        ("something of the site's own", None),
        ("", None),
    ],
)
def test_only_comments_of_this_grid_are_read(comment: str, expected: JobKey | None) -> None:
    assert replace(KEY, job_id=0, claimed_at=0).of_same_grid(comment) == expected


def test_the_rule_never_touches_a_job_of_another_provider() -> None:
    stranger: Job = replace(JOB, provider="0xB")
    for status in JobStatus:
        for slurm in (ABSENT, ended("COMPLETED")):
            assert put_right_by(Observation(KEY, ME, replace(stranger, status=status), slurm, NOW, Attempt())) is None
