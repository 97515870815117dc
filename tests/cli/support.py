"""A job on chain, and the command in process, for tests that need no grid."""

from __future__ import annotations

from collections.abc import Callable

from typer.testing import Result

from deepgrid.lifecycle.job import Job, JobDefinition
from deepgrid.lifecycle.states import JobStatus

DEFINITION = JobDefinition(gpus=0, mem_per_cpu_mb=1, cpus_per_task=1, ntasks=1, definition_hash="")
JOB = Job(
    id=1, status=JobStatus.FINISHED, customer="0x1", provider=None, definition=DEFINITION, name="", locked_wei=0,
    final_cost_wei=0, submitted_at=0, assigned_at=0, claimed_at=0, started_at=0, ended_at=0, cancel_requested_at=0,
    has_cancel_request=False, rate_wei_per_minute=0, cut_percent=0, granted_minutes=0, last_refuser=None,
    delegate_spending=False, last_error="", exit_status=0,
)  # fmt: skip
Invoke = Callable[..., Result]
