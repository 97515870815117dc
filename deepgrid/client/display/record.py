"""All known facts of a job, as pairs of words, as its life in order, as a row of a list, as a bill, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from deepgrid.billing.credits import format_credits
from deepgrid.billing.entries import Settlement
from deepgrid.billing.formulas import bill
from deepgrid.chain.history import Transition
from deepgrid.client.display import story
from deepgrid.client.display.text import moment, plural
from deepgrid.client.job_values import Bill, LogLine, Remark, Step, ViewMessage, bill_of, datetime_of
from deepgrid.lifecycle.exits import outcome
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.minutes import started_minutes
from deepgrid.lifecycle.states import JobStatus

# The action that led to a state.
ACTIONS = {
    JobStatus.PENDING: "requested",
    JobStatus.META_SCHEDULED: "assigned",
    JobStatus.SCHEDULED: "claimed",
    JobStatus.RUNNING: "reported running",
}


def bill_rows(job: Job, settlement: Settlement) -> list[tuple[str, str]]:
    """Return the division of the locked credits, as names and amounts."""
    cost_wei = settlement.paid_wei + settlement.cut_wei
    provider_share = f"to provider ({100 - job.cut_percent} %)" if cost_wei else "to provider"
    platform_share = f"platform cut ({job.cut_percent} %)" if cost_wei else "platform cut"
    return [
        ("rate", f"{format_credits(job.rate_wei_per_minute)} credits per minute" if job.rate_wei_per_minute else "-"),
        ("minutes", str(settlement.billed_minutes)),
        ("cost", format_credits(cost_wei)),
        (provider_share, format_credits(settlement.paid_wei)),
        (platform_share, format_credits(settlement.cut_wei)),
        ("refund", format_credits(job.returned_wei)),
        ("locked", format_credits(job.locked_wei)),
    ]


def transaction_rows(history: Iterable[Transition]) -> list[tuple[str, str]]:
    """Return the cause of each state, and the hash of its transaction."""
    return [(_action(transition), transition.tx_hash) for transition in history]


def _action(transition: Transition) -> str:
    if transition.before is not None and transition.after is JobStatus.PENDING:
        return "given back"
    return ACTIONS.get(transition.after, "settled")


def running_cost(job: Job, now: int) -> str:
    """Return the cost of a running job so far, and how long its credits last, at the unix time `now`."""
    minutes = min(started_minutes(job.started_at, max(now, job.started_at)), max(1, job.granted_minutes))
    cost = format_credits(bill(minutes, job.rate_wei_per_minute, job.locked_wei, job.cut_percent).cost)
    return f"{cost} credits for {plural(minutes, 'minute')}, of {plural(job.granted_minutes, 'minute')} paid for"


def bill_as_json(job: Job, settlement: Settlement | None) -> dict[str, Any] | None:
    """Return the settlement, with amounts as texts; None while there is none."""
    if settlement is None:
        return None
    return {
        "minutes": settlement.billed_minutes,
        "cost_wei": str(settlement.paid_wei + settlement.cut_wei),
        "paid_wei": str(settlement.paid_wei),
        "cut_wei": str(settlement.cut_wei),
        "refunded_wei": str(job.returned_wei),
        "tx_hash": settlement.tx_hash,
    }


JOB_COLUMNS = (">ID", "STATE", "NAME", "CLUSTER", "SUBMITTED", ">COST", ">LOCKED")  # ">" aligns right


@dataclass(frozen=True)
class QueuePlace:
    """The place of a job in a queue.

    Attributes:
        position: Its position, from 1, among the jobs that wait for the same. None if the queue names no positions.
        length: Number of these jobs. Without a position, number of jobs that are assigned to clusters or running.
        pending: Whether it waits for a cluster. Otherwise it waits for the claim of its cluster.
    """

    position: int | None
    length: int
    pending: bool

    @property
    def words(self) -> str:
        """The place in words."""
        if self.position is None:
            return f"{plural(self.length, 'job')} in the grid, assigned to clusters or running"
        where = "among the jobs that wait for a cluster" if self.pending else "in the queue of its cluster"
        return f"position {self.position} of {self.length} {where}"


@dataclass(frozen=True)
class JobRecord:
    """A job with all that is known about it.

    Attributes:
        job: The job on chain.
        cluster: Name of its cluster; empty while none is assigned.
        history: Changes of its state, oldest first.
        settlement: The division of its deposit; None until it is over.
        remarks: Remarks of the grid, oldest first; None if the services did not answer.
        now: Time of the newest block in unix seconds.
        place: Its place in the queue; None if it does not wait, or is not known.
    """

    job: Job
    cluster: str
    history: tuple[Transition, ...]
    settlement: Settlement | None
    remarks: tuple[Remark, ...] | None
    now: int
    place: QueuePlace | None = None


def facts(record: JobRecord) -> list[tuple[str, str]]:
    """Return names and values. A value is empty if there is none."""
    job = record.job
    running = job.status is JobStatus.RUNNING
    return [
        ("why it waits", why_it_waits(record)),
        ("queue", place_words(record)),
        ("outcome", outcome(job) if job.status.cold else ""),
        ("cluster", f"{record.cluster} ({job.provider})" if job.provider else ""),
        ("customer", job.customer),
        ("submitted", moment(job.submitted_at)),
        ("started", moment(job.started_at) if job.started_at else ""),
        ("ended", moment(job.ended_at) if job.ended_at else ""),
        ("resources", story.resources_words(job)),
        ("conditions", ", ".join(story.conditions(job))),
        ("wishes", ", ".join(story.wishes(job))),
        ("locked", f"{format_credits(job.locked_wei)} credits"),
        ("rate", f"{format_credits(job.rate_wei_per_minute)} credits per minute" if job.rate_wei_per_minute else ""),
        ("cost so far", running_cost(job, record.now) if running else ""),
        ("top-ups", "by the grid, from your allowance" if job.delegate_spending else ""),
    ]


def why_it_waits(record: JobRecord) -> str:
    """Return why a job waits: the latest remark on its state, or a general sentence if there is none."""
    words = story.waiting_words(record.job, record.cluster, record.remarks)
    if words and record.remarks is None:
        return f"{words} (the services may know more, but do not answer)"
    return words


def place_words(record: JobRecord) -> str:
    """Return the place in the queue.

    Empty if the operator's remark has the place in its line, which does not depend only on age.
    """
    told = record.remarks[-1].kind if record.remarks else ""
    if record.place is None or (record.place.pending and told == "waiting"):
        return ""
    return record.place.words


def life(record: JobRecord) -> list[Step | Remark | ViewMessage]:
    """Return states and remarks, sorted by time."""
    told: list[Step | Remark | ViewMessage] = [*story.steps_of(record.history, record.job, record.cluster)]
    told += record.remarks or ()
    if record.job.has_cancel_request and record.job.claimed_at:  # before the claim, a cancel takes effect at once
        told.append(cancel_requested(record.job))
    return sorted(told, key=lambda entry: entry.at)


def cancel_requested(job: Job) -> ViewMessage:
    return ViewMessage(datetime_of(job.cancel_requested_at), "cancellation was requested")


def job_row(job: Job, cluster: str) -> list[str]:
    """Return the job in a table with the columns JOB_COLUMNS."""
    cost, locked = format_credits(job.final_cost_wei) if job.status.cold else "-", format_credits(job.locked_wei)
    return [str(job.id), job.status.words, job.name, cluster or "-", moment(job.submitted_at), cost, locked]


def record_as_json(record: JobRecord) -> dict[str, Any]:
    """Return the record as JSON values. Amounts are texts of wei, times are unix seconds."""
    place = record.place
    return {
        **job_as_json(record.job, record.cluster),
        "why_it_waits": why_it_waits(record) or None,
        "queue": None if place is None else {"position": place.position, "length": place.length},
        "history": [
            {"status": step.after.name.lower(), "at": step.at, "tx_hash": step.tx_hash} for step in record.history
        ],
        "notices": None if record.remarks is None else [_remark_as_json(remark) for remark in record.remarks],
        "bill": bill_as_json(record.job, record.settlement),
    }


def _remark_as_json(remark: Remark) -> dict[str, Any]:
    at = int(remark.at.timestamp())
    return {"kind": remark.kind, "text": remark.text, "author": remark.author, "at": at}


def job_as_json(job: Job, cluster: str) -> dict[str, Any]:
    """Return the job's values on chain. Missing values are null."""
    wanted = job.definition
    return {
        "id": job.id,
        "name": job.name,
        "status": job.status.name.lower(),
        "exit_status": story.exit_status_of(job) if job.status.cold else None,
        "wait_status": job.exit_status if job.status.cold else None,
        "last_error": job.last_error or None,
        "customer": job.customer,
        "provider": job.provider,
        "cluster": cluster or None,
        "resources": {
            "tasks": wanted.ntasks,
            "cpus_per_task": wanted.cpus_per_task,
            "mem_per_cpu_mb": wanted.mem_per_cpu_mb,
            "gpus": wanted.gpus,
        },
        "conditions": story.conditions(job),
        "wishes": {
            "max_wei_per_minute": str(job.wishes.max_rate_wei) if job.wishes.max_rate_wei else None,
            "min_minutes": job.wishes.min_minutes,
            "give_up_at": job.wishes.give_up_at or None,
            "prefer": job.wishes.prefer.name.lower(),
            "after": job.wishes.after_job or None,
            "after_any": job.wishes.after_any,
        },
        "location_hash": wanted.definition_hash,
        "locked_wei": str(job.locked_wei),
        "released_wei": str(job.released_wei),
        "held_until": job.held_until or None,
        "cost_wei": str(job.final_cost_wei) if job.status.cold else None,
        "rate_wei_per_minute": str(job.rate_wei_per_minute) if job.rate_wei_per_minute else None,
        "granted_minutes": job.granted_minutes or None,
        "submitted_at": job.submitted_at,
        "claimed_at": job.claimed_at or None,
        "started_at": job.started_at or None,
        "ended_at": job.ended_at or None,
        "cancel_requested": job.has_cancel_request,
        "delegate_spending": job.delegate_spending,
    }


@dataclass(frozen=True, slots=True)
class JobEnd:
    """The job is over. This is the last event of a live view.

    Attributes:
        record: All that is known about the job now.
    """

    record: JobRecord

    @property
    def at(self) -> datetime:
        """When the job was settled."""
        return datetime_of(self.record.job.ended_at)

    @property
    def bill(self) -> Bill:
        """Its bill."""
        return bill_of(self.record.job)

    @property
    def exit_status(self) -> int:
        """Exit status of `dps` for this job: the job's own, or one for its final state."""
        return story.exit_status_of(self.record.job)


JobEvent = Step | Remark | LogLine | ViewMessage | JobEnd
"""A state that the job reached, a remark of the grid, a line of output, a message of the client, or the end."""
