"""Shows jobs with all known facts for `dps job get` and `dps job list`, as text and as JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deepgrid.billing.credits import format_credits
from deepgrid.billing.entries import Settlement
from deepgrid.chain.history import Transition
from deepgrid.cli.bill import bill_as_json, running_cost, show_bill, show_transactions
from deepgrid.cli.screen import STYLES, Screen
from deepgrid.client.display.exits import exit_status_of
from deepgrid.client.display.story import ClusterNames, conditions, outcome, resources_words, tell, whereabouts
from deepgrid.client.display.text import moment
from deepgrid.customer.session import CustomerSession
from deepgrid.errors import ServiceError
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus

if TYPE_CHECKING:
    from deepgrid.services.messages import Notice


@dataclass(frozen=True)
class Record:
    """A job with its history, settlement and notices. `notices` is None if the services do not answer."""

    job: Job
    cluster: str
    history: list[Transition]
    settlement: Settlement | None
    notices: list[Notice] | None
    now: int


async def read_record(session: CustomerSession, job_id: int) -> Record:
    """Read everything about a job. Raises NotFound."""
    job = await session.chain.job(job_id)
    history, settlement, notices, cluster, now = await asyncio.gather(
        session.chain.history(job_id),
        session.chain.settlement(job_id),
        _notices(session, job_id),
        ClusterNames(session.chain).of(job.provider),
        session.chain.now(),
    )
    return Record(job, cluster, history, settlement, notices, now)


async def _notices(session: CustomerSession, job_id: int) -> list[Notice] | None:
    try:
        return list(await session.services.notices(job_id))
    except ServiceError:
        return None


def show_record(screen: Screen, record: Record) -> None:
    """Print the job as text."""
    job = record.job
    screen.line(
        (f"job {job.id}", "bold"), f"  {job.name}  ", (job.status.words.upper(), STYLES.get(job.status, "bold"))
    )
    screen.pairs(_facts(record))
    screen.heading("Life")
    for when, status, what in _life(record):
        if status is None:
            screen.remark(what, when)
        else:
            screen.state(when, status, what)
    if record.settlement is not None:
        show_bill(screen, job, record.settlement, record.history)
    else:
        show_transactions(screen, record.history)


def _facts(record: Record) -> list[tuple[str, str]]:
    job = record.job
    running = job.status is JobStatus.RUNNING
    return [
        ("why it waits", _why(record)),
        ("outcome", outcome(job) if job.status.cold else ""),
        ("cluster", f"{record.cluster} ({job.provider})" if job.provider else ""),
        ("customer", job.customer),
        ("submitted", moment(job.submitted_at)),
        ("started", moment(job.started_at) if job.started_at else ""),
        ("ended", moment(job.ended_at) if job.ended_at else ""),
        ("resources", resources_words(job)),
        ("conditions", ", ".join(conditions(job))),
        ("locked", f"{format_credits(job.locked_wei)} credits"),
        ("rate", f"{format_credits(job.rate_wei_per_minute)} credits per minute" if job.rate_wei_per_minute else ""),
        ("cost so far", running_cost(job, record.now) if running else ""),
        ("top-ups", "by the grid, from your allowance" if job.delegate_spending else ""),
    ]


def _why(record: Record) -> str:
    """Why a job waits: the latest notice on its state if there is one, else a general sentence."""
    job = record.job
    if job.status.cold or (job.status is JobStatus.RUNNING and not job.has_cancel_request):
        return ""
    if record.notices is None:
        return f"{whereabouts(job, record.cluster)} (the services may know more, but do not answer)"
    reason = record.notices[-1] if record.notices else None
    if job.status is JobStatus.PENDING and reason is not None and reason.kind != "assigned":
        return reason.text
    return whereabouts(job, record.cluster)


def _life(record: Record) -> list[tuple[int, JobStatus | None, str]]:
    """States and remarks, sorted by time."""
    told = tell(record.history, record.job, record.cluster)
    states = [(step.at, step.after, what) for step, what in told]
    remarks = [(notice.at, None, f"{notice.kind}: {notice.text}") for notice in record.notices or ()]
    if record.job.has_cancel_request:
        remarks.append((record.job.cancel_requested_at, None, "cancellation was requested"))
    return sorted([*states, *remarks], key=lambda entry: entry[0])


def show_jobs(screen: Screen, jobs: Sequence[Job], clusters: Sequence[str]) -> None:
    """Print jobs as a table."""
    rows = [
        [
            str(job.id), job.status.words, job.name, cluster or "-", moment(job.submitted_at),
            format_credits(job.final_cost_wei) if job.status.cold else "-", format_credits(job.locked_wei),
        ]
        for job, cluster in zip(jobs, clusters, strict=True)
    ]  # fmt: skip
    screen.table([">ID", "STATE", "NAME", "CLUSTER", "SUBMITTED", ">COST", ">LOCKED"], rows)


def record_as_json(record: Record) -> dict[str, Any]:
    """The record as JSON values. Amounts are texts of wei, times are unix seconds."""
    return {
        **job_as_json(record.job, record.cluster),
        "why_it_waits": _why(record) or None,
        "history": [
            {"status": step.after.name.lower(), "at": step.at, "tx_hash": step.tx_hash} for step in record.history
        ],
        "notices": None if record.notices is None else [notice.model_dump() for notice in record.notices],
        "bill": bill_as_json(record.settlement),
    }  # fmt: skip


def job_as_json(job: Job, cluster: str) -> dict[str, Any]:
    """The job's values on chain. Missing values are null."""
    wanted = job.definition
    return {
        "id": job.id,
        "name": job.name,
        "status": job.status.name.lower(),
        "exit_status": exit_status_of(job) if job.status.cold else None,
        "wait_status": job.exit_status if job.status.cold else None,
        "last_error": job.last_error or None,
        "customer": job.customer,
        "provider": job.provider,
        "cluster": cluster or None,
        "resources": {
            "tasks": wanted.ntasks, "cpus_per_task": wanted.cpus_per_task,
            "mem_per_cpu_mb": wanted.mem_per_cpu_mb, "gpus": wanted.gpus,
        },
        "conditions": conditions(job),
        "location_hash": wanted.definition_hash,
        "locked_wei": str(job.locked_wei),
        "cost_wei": str(job.final_cost_wei) if job.status.cold else None,
        "rate_wei_per_minute": str(job.rate_wei_per_minute) if job.rate_wei_per_minute else None,
        "granted_minutes": job.granted_minutes or None,
        "submitted_at": job.submitted_at,
        "claimed_at": job.claimed_at or None,
        "started_at": job.started_at or None,
        "ended_at": job.ended_at or None,
        "cancel_requested": job.has_cancel_request,
        "delegate_spending": job.delegate_spending,
    }  # fmt: skip
