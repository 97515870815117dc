"""The bill of a job as pairs of words, and as JSON: rate, minutes, cost, its division, transactions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from deepgrid.billing.credits import format_credits
from deepgrid.billing.entries import Settlement
from deepgrid.billing.formulas import bill
from deepgrid.chain.history import Transition
from deepgrid.client.display.text import plural
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.minutes import started_minutes
from deepgrid.lifecycle.states import JobStatus

# The action that led to a state.
DEEDS = {
    JobStatus.PENDING: "requested",
    JobStatus.META_SCHEDULED: "assigned",
    JobStatus.SCHEDULED: "claimed",
    JobStatus.RUNNING: "reported running",
}


def bill_rows(job: Job, settlement: Settlement) -> list[tuple[str, str]]:
    """The division of the locked credits, as names and amounts."""
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
    """What led to each state, and the hash of its transaction."""
    return [(_deed(transition), transition.tx_hash) for transition in history]


def _deed(transition: Transition) -> str:
    if transition.before is not None and transition.after is JobStatus.PENDING:
        return "given back"
    return DEEDS.get(transition.after, "settled")


def running_cost(job: Job, now: int) -> str:
    """The cost of a running job so far, and how long its credits last, at the unix time `now`."""
    minutes = min(started_minutes(job.started_at, max(now, job.started_at)), max(1, job.granted_minutes))
    cost = format_credits(bill(minutes, job.rate_wei_per_minute, job.locked_wei, job.cut_percent).cost)
    return f"{cost} credits for {plural(minutes, 'minute')}, of {plural(job.granted_minutes, 'minute')} paid for"


def bill_as_json(job: Job, settlement: Settlement | None) -> dict[str, Any] | None:
    """The settlement, with amounts as texts; None while there is none."""
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
