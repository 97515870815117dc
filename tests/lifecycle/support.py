"""A claimed job in the states of chain and Slurm, for the tests of the pure packages."""

from __future__ import annotations

from dataclasses import replace

from deepgrid.lifecycle.decide import Observation
from deepgrid.lifecycle.job import Job, JobDefinition, JobKey
from deepgrid.lifecycle.slurm_state import Phase, SlurmJob
from deepgrid.lifecycle.states import JobStatus

ME = "0xAaAa000000000000000000000000000000000001"
CLAIMED = 1_000
NOW = 10_000
KEY = JobKey(1, "0x" + "ab" * 20, 7, CLAIMED)
JOB = Job(
    id=7, status=JobStatus.SCHEDULED, customer="0xc", provider=ME, definition=JobDefinition(0, 100, 1, 1, "hash"),
    name="job", locked_wei=100, final_cost_wei=0, submitted_at=900, assigned_at=950, claimed_at=CLAIMED, started_at=0,
    ended_at=0, cancel_requested_at=0, has_cancel_request=False, rate_wei_per_minute=10, cut_percent=20,
    granted_minutes=10, last_refuser=None, delegate_spending=False, last_error="", exit_status=0,
)  # fmt: skip
QUEUED = SlurmJob(Phase.QUEUED, 5, "PENDING", limit_minutes=10)
RUNNING = SlurmJob(Phase.RUNNING, 5, "RUNNING", started_at=NOW - 61, limit_minutes=10)


def ended(state: str, ran_s: int = 61, exit_status: int = 0, reason: str = "") -> SlurmJob:
    return SlurmJob(Phase.ENDED, 5, state, NOW - ran_s, NOW, exit_status, reason)


def seen(status: JobStatus, slurm: SlurmJob, **more: object) -> Observation:
    job_fields = {k: v for k, v in more.items() if k in Job.__dataclass_fields__}
    rest = {k: v for k, v in more.items() if k not in job_fields}
    return Observation(KEY, ME, replace(JOB, status=status, **job_fields), slurm, NOW, **rest)  # type: ignore[arg-type]


S, R = JobStatus.SCHEDULED, JobStatus.RUNNING
