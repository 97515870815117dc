"""Jobs that the cluster does not start, or that it ends by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deepgrid.lifecycle.actions import Awaited, Refuse, Settle, Wait
from deepgrid.lifecycle.decide import Attempt, Observation, decide
from deepgrid.lifecycle.ends import CANCELLED_BY_SITE, ENDED_EARLY, FAILED_LAUNCH
from deepgrid.lifecycle.slurm_state import ABSENT
from deepgrid.lifecycle.states import JobStatus
from tests.lifecycle.support import QUEUED, R, S, ended, seen

CASES = {
    "a limit of submitted jobs is waited for": (
        seen(S, ABSENT, attempt=Attempt(limited=True), absent_s=10**6, pending_s=86399.0),
        Wait(Awaited.ROOM),
    ),
    "for a day": (
        seen(S, ABSENT, attempt=Attempt(limited=True), absent_s=10**6, pending_s=86400.0),
        Refuse("the cluster's limit for its account is reached"),
    ),
    "a customer may cancel meanwhile": (
        seen(S, ABSENT, attempt=Attempt(limited=True), has_cancel_request=True),
        Settle(JobStatus.CANCELLED, 0, tombstone=True),
    ),
    "a held job waits for an administrator": (
        seen(S, replace(QUEUED, reason="JobHeldAdmin"), pending_s=3599.0),
        Wait(Awaited.START),
    ),
    "but not forever": (
        seen(S, replace(QUEUED, reason="JobHeldAdmin"), pending_s=3600.0),
        Refuse("the cluster holds the job"),
    ),
    "an unknown reason waits as long": (
        seen(S, replace(QUEUED, reason="Moonphase"), pending_s=3600.0),
        Refuse("the cluster does not start the job, and its reason is not known (Moonphase)"),
    ),
    "nodes that are down may take a day to come back": (
        seen(S, replace(QUEUED, reason="ReqNodeNotAvail, UnavailableNodes:n1"), pending_s=86399.0),
        Wait(Awaited.START),
    ),
    "a busy cluster is waited for": (
        seen(S, replace(QUEUED, reason="Resources"), pending_s=10**9),
        Wait(Awaited.START),
    ),
    "a job whose canceller is unknown pays, too": (
        seen(R, replace(ended("CANCELLED"), began=True)),
        Settle(JobStatus.FAILED, 2, error="cancelled at the cluster"),
    ),
    "but not if nothing of it ran, as after a failed prolog": (
        seen(R, ended("CANCELLED", 1)),
        Settle(JobStatus.FAILED, 0, error=FAILED_LAUNCH.error, tombstone=True),
    ),
    "but only two times per day": (
        seen(R, ended("CANCELLED", 1), launch_failures=2),
        Settle(JobStatus.FAILED, 1, error="cancelled at the cluster"),
    ),
    "suspended time is not billed": (
        seen(R, replace(ended("COMPLETED", 600), suspended_s=540)),
        Settle(JobStatus.FINISHED, 1),
    ),
    "a job that an administrator cancels pays nothing": (
        seen(R, replace(ended("CANCELLED"), cancelled_by_site=True)),
        Settle(JobStatus.FAILED, 0, error=CANCELLED_BY_SITE.error, tombstone=True),
    ),
    "unless its customer had cancelled it too": (
        seen(R, replace(ended("CANCELLED"), cancelled_by_site=True), has_cancel_request=True),
        Settle(JobStatus.CANCELLED, 2),
    ),
    "a time limit that the cluster lowered": (
        seen(R, ended("TIMEOUT"), limit_minutes=10),
        Settle(JobStatus.FAILED, 2, error=ENDED_EARLY.error),
    ),
    "a time limit before the last top-up reached Slurm": (
        seen(R, ended("TIMEOUT", 300), limit_minutes=5),
        Settle(JobStatus.OUT_OF_CREDITS, 5),
    ),
    "a time limit that Slurm refused to raise": (
        seen(R, ended("TIMEOUT", 300), limit_is_final=True),
        Settle(JobStatus.OUT_OF_CREDITS, 5),
    ),
}


@pytest.mark.parametrize(("observation", "action"), CASES.values(), ids=CASES.keys())
def test_next_step(observation: Observation, action: object) -> None:
    assert decide(observation) == action
