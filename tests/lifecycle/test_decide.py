"""The next action for a claim, for every relevant combination of chain state and Slurm state."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepgrid.lifecycle.actions import (
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
from deepgrid.lifecycle.decide import LOST, LOST_GRACE_S, Attempt, Observation, decide
from deepgrid.lifecycle.ends import HAD_RUN, REQUEUED
from deepgrid.lifecycle.slurm_state import ABSENT, UNKNOWN, Phase, SlurmJob
from deepgrid.lifecycle.states import EDGES, JobStatus
from tests.lifecycle.support import CLAIMED, NOW, QUEUED, RUNNING, R, S, ended, seen

CASES = {
    "silence of Slurm means waiting": (seen(S, UNKNOWN), Wait(Awaited.SLURM)),
    "silence while running means waiting": (seen(R, UNKNOWN), Wait(Awaited.SLURM)),
    "a fresh claim is submitted": (seen(S, ABSENT), Submit()),
    "less than a minute bought fails": (
        seen(S, ABSENT, granted_minutes=0),
        Settle(JobStatus.FAILED, 0, error="the locked credits buy less than a minute here", tombstone=True),
    ),
    "queued waits": (seen(S, QUEUED), Wait(Awaited.START)),
    "a job that Slurm would keep queued forever is refused": (
        seen(S, replace(QUEUED, reason="PartitionTimeLimit")),
        Refuse("the cluster's partition does not allow jobs of that length"),
    ),
    "started is reported with started minutes": (seen(S, RUNNING), ReportRunning(2)),
    "running waits": (seen(R, RUNNING), Wait(Awaited.END)),
    "requeued by Slurm waits": (seen(R, QUEUED), Wait(Awaited.END)),
    "a top-up extends": (seen(R, RUNNING, granted_minutes=12), ExtendLimit(12)),
    "requeued, and cancelled there": (
        seen(R, replace(ended("CANCELLED"), started_at=None), has_cancel_request=True),
        Settle(JobStatus.CANCELLED, 0, tombstone=True),
    ),
    "a top-up extends in the queue": (seen(S, QUEUED, granted_minutes=12), ExtendLimit(12)),
    "a limit is extended once": (seen(R, RUNNING, granted_minutes=12, limit_minutes=12), Wait(Awaited.END)),
    "a refused extension is not repeated": (
        seen(R, RUNNING, granted_minutes=12, limit_is_final=True),
        Wait(Awaited.END),
    ),
    "a job with a cancel request is not extended": (
        seen(R, RUNNING, granted_minutes=12, has_cancel_request=True),
        CancelAtSlurm("the customer cancelled the job"),
    ),
    "RUNNING is reported first": (seen(S, RUNNING, granted_minutes=12), ReportRunning(2)),
    "an unknown limit is set": (seen(R, replace(RUNNING, limit_minutes=None)), ExtendLimit(10)),
    "a limit above the granted minutes stays": (seen(R, replace(RUNNING, limit_minutes=20)), Wait(Awaited.END)),
    "finished": (seen(R, ended("COMPLETED")), Settle(JobStatus.FINISHED, 2)),
    "exit 3": (seen(R, ended("FAILED", exit_status=768)), Settle(JobStatus.FAILED, 2, 768)),
    "time limit": (seen(R, ended("TIMEOUT", 700)), Settle(JobStatus.OUT_OF_CREDITS, 10)),
    "node failure bills nothing": (
        seen(R, ended("NODE_FAIL")),
        Settle(JobStatus.FAILED, 0, error="a node of the cluster failed", tombstone=True),
    ),
    "launch failure bills nothing": (
        seen(S, ended("FAILED", 60, reason="JobLaunchFailure")),
        Settle(JobStatus.FAILED, 0, error="the cluster could not launch the job", tombstone=True),
    ),
    "a launch that fails late had run": (
        seen(R, ended("FAILED", 61, reason="JobLaunchFailure")),
        Settle(JobStatus.FAILED, 2, error=HAD_RUN.error),
    ),
    "a launch that fails after the script began had run": (
        seen(R, replace(ended("FAILED", 5, reason="JobLaunchFailure"), began=True)),
        Settle(JobStatus.FAILED, 1, error=HAD_RUN.error),
    ),
    "a customer's second launch failure of the day is free": (
        seen(R, ended("FAILED", 5, reason="JobLaunchFailure"), launch_failures=1),
        Settle(JobStatus.FAILED, 0, error="the cluster could not launch the job", tombstone=True),
    ),
    "the third is billed": (
        seen(R, ended("FAILED", 5, reason="JobLaunchFailure"), launch_failures=2),
        Settle(JobStatus.FAILED, 1, error=HAD_RUN.error),
    ),
    "a job that was queued again is stopped": (seen(R, replace(QUEUED, requeued=True)), CancelAtSlurm(REQUEUED.error)),
    "a job that runs a second time is stopped": (
        seen(S, replace(RUNNING, requeued=True)),
        CancelAtSlurm(REQUEUED.error),
    ),
    "and all its runs are billed": (
        seen(R, replace(ended("REQUEUED", 600), requeued=True, ran_s=130)),
        Settle(JobStatus.FAILED, 3, error=REQUEUED.error, tombstone=True),
    ),
    "a launch failure of a job that was queued again is none": (
        seen(R, replace(ended("FAILED", 5, reason="JobLaunchFailure"), requeued=True, ran_s=70)),
        Settle(JobStatus.FAILED, 2, error=REQUEUED.error, tombstone=True),
    ),
    "parts of a run add up": (
        seen(R, replace(ended("COMPLETED", 600), ran_s=61)),
        Settle(JobStatus.FINISHED, 2),
    ),
    "out of memory says so": (
        seen(R, ended("OUT_OF_MEMORY", exit_status=9)),
        Settle(JobStatus.FAILED, 2, 9, "the job needed more memory than it asked for"),
    ),
    "an unknown state means waiting": (seen(R, ended("SPLENDID")), Wait(Awaited.END)),
    "ended before RUNNING was reported": (seen(S, ended("COMPLETED", 30)), ReportRunning(1)),
    "cancelled while running": (
        seen(R, RUNNING, has_cancel_request=True),
        CancelAtSlurm("the customer cancelled the job"),
    ),
    "cancelled, and a part of its credits came back before the answer": (
        seen(R, RUNNING, has_cancel_request=True, released_wei=80, granted_minutes=2),
        CancelAtSlurm("the customer cancelled the job"),
    ),
    "answered after a part of its credits came back": (
        seen(R, ended("CANCELLED", 600), has_cancel_request=True, released_wei=80, granted_minutes=2),
        Settle(JobStatus.CANCELLED, 2),
    ),
    "not reported as running before a part of its credits came back": (
        seen(S, ended("CANCELLED", 600), has_cancel_request=True, released_wei=80, granted_minutes=2),
        ReportRunning(10),
    ),
    "cancelled at Slurm for the customer": (
        seen(R, ended("CANCELLED"), has_cancel_request=True),
        Settle(JobStatus.CANCELLED, 2),
    ),
    "cancelled for a request that a reorganisation has dropped": (
        seen(R, replace(ended("CANCELLED"), stopped=True)),
        Settle(JobStatus.CANCELLED, 2),
    ),
    "it began just when it was given back": (
        seen(S, replace(ended("CANCELLED"), stopped=True)),
        Settle(JobStatus.FAILED, 0, error="the cluster cancelled the job", tombstone=True),
    ),
    "a job that cancels itself pays for what ran": (
        seen(R, replace(ended("CANCELLED"), cancelled_by_site=False)),
        Settle(JobStatus.FAILED, 2, error="cancelled at the cluster"),
    ),
    "cancelled in the queue": (
        seen(S, QUEUED, has_cancel_request=True),
        CancelAtSlurm("the customer cancelled the job"),
    ),
    "cancelled before it was submitted": (
        seen(S, ABSENT, has_cancel_request=True),
        Settle(JobStatus.CANCELLED, 0, tombstone=True),
    ),
    "cancelled on chain while running, and barred before it started": (
        seen(R, replace(ABSENT, stopped=True), has_cancel_request=True),
        Settle(JobStatus.CANCELLED, 0, tombstone=True),
    ),
    "barred without a cancel request": (seen(R, replace(ABSENT, stopped=True), absent_s=1.0), Wait(Awaited.TRACE)),
    "cancelled, and lost by its cluster": (
        seen(R, ABSENT, has_cancel_request=True, absent_s=1.0),
        Wait(Awaited.TRACE),
    ),
    "finished in the second of the cancel": (
        seen(R, ended("COMPLETED"), has_cancel_request=True),
        Settle(JobStatus.FINISHED, 2),
    ),
    "cold on chain but alive at Slurm": (
        seen(JobStatus.CANCELLED, RUNNING),
        CancelAtSlurm("the job is cancelled"),
    ),
    "cold and gone": (seen(JobStatus.FINISHED, ended("COMPLETED")), Done("the job is finished")),
    "another claim's": (seen(S, ABSENT, claimed_at=CLAIMED + 1), Done("this claim is no longer ours")),
    "another provider's": (seen(S, QUEUED, provider="0xb"), CancelAtSlurm("this claim is no longer ours")),
    "unfit is refused": (seen(S, ABSENT, attempt=Attempt(unfit="too big")), Refuse("too big")),
    "unfit is refused though Slurm keeps a record of the refused start": (
        seen(S, replace(ended("FAILED"), started_at=None), attempt=Attempt(unfit="too big")),
        Refuse("too big"),
    ),
    "unusable fails": (
        seen(S, ABSENT, attempt=Attempt(unusable="gone")),
        Settle(JobStatus.FAILED, 0, error="gone", tombstone=True),
    ),
    "submitted but not to be seen yet": (
        seen(S, ABSENT, attempt=Attempt(), absent_s=1),
        Wait(Awaited.TRACE),
    ),
    "submitted and lost": (
        seen(S, ABSENT, attempt=Attempt(), absent_s=LOST_GRACE_S),
        Settle(JobStatus.PANICKED, 0, error=LOST, tombstone=True),
    ),
    "running and lost": (
        seen(R, ABSENT, absent_s=LOST_GRACE_S),
        Settle(JobStatus.PANICKED, 0, error=LOST, tombstone=True),
    ),
    "running and absent for a moment": (seen(R, ABSENT, absent_s=0), Wait(Awaited.TRACE)),
}


@pytest.mark.parametrize(("observation", "action"), CASES.values(), ids=CASES.keys())
def test_next_step(observation: Observation, action: object) -> None:
    assert decide(observation) == action


observations = st.builds(
    lambda status, slurm, cancel, granted, attempt, absent, claimed, limit, final: seen(
        status, slurm, has_cancel_request=cancel, granted_minutes=granted, attempt=attempt,
        absent_s=absent, claimed_at=claimed, limit_minutes=limit, limit_is_final=final,
    ),
    st.sampled_from(JobStatus),
    st.builds(
        SlurmJob, st.sampled_from(Phase), st.just(5),
        st.sampled_from(["", "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "PREEMPTED", "NEW"]),
        st.one_of(st.none(), st.integers(0, NOW)), st.one_of(st.none(), st.integers(NOW, 10 * NOW)),
        st.integers(0, 65535), st.sampled_from(["", "None", "JobLaunchFailure"]),
        st.one_of(st.none(), st.integers(1, 99)),
    ),
    st.booleans(), st.integers(0, 100),
    st.sampled_from([None, Attempt(), Attempt(unfit="x"), Attempt(unusable="y")]),
    st.one_of(st.none(), st.integers(0, NOW)), st.sampled_from([CLAIMED, CLAIMED + 1]),
    st.one_of(st.none(), st.integers(1, 99)), st.booleans(),
)  # fmt: skip


@given(observations)
def test_every_report_is_an_edge_that_the_contract_accepts(observation: Observation) -> None:
    action = decide(observation)
    status = observation.job.status
    if isinstance(action, Settle):
        assert action.status in EDGES[status]
        assert 0 <= action.minutes <= max(observation.job.granted_minutes, 0)
    if isinstance(action, ReportRunning):
        assert JobStatus.RUNNING in EDGES[status]
    if isinstance(action, Refuse):
        assert JobStatus.PENDING in EDGES[status]


@given(observations)
def test_silence_never_costs_a_job(observation: Observation) -> None:
    silent = replace(observation, slurm=UNKNOWN)
    assert decide(silent) == Wait(Awaited.SLURM)


@given(observations)
def test_nothing_alive_at_slurm_is_left_behind(observation: Observation) -> None:
    if isinstance(decide(observation), Done):
        assert not observation.alive_at_slurm


@given(observations)
def test_a_limit_is_only_ever_raised_to_what_is_paid_for(observation: Observation) -> None:
    action = decide(observation)
    if isinstance(action, ExtendLimit):
        assert action.minutes == observation.job.granted_minutes
        assert action.minutes > max(observation.limit_minutes or 0, observation.slurm.limit_minutes or 0)
        assert observation.alive_at_slurm
        again = replace(observation, limit_minutes=action.minutes)
        assert not isinstance(decide(again), ExtendLimit)


@given(observations)
def test_a_job_that_may_not_have_more_time_is_left_to_run(observation: Observation) -> None:
    assert not isinstance(decide(replace(observation, limit_is_final=True)), ExtendLimit)
