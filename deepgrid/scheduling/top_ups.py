"""Selects the jobs that get another slice of time from their customers' allowances. Pure.

A slice is the contract's `topUpSliceDurationMin`. Jobs that end first get a slice first, while the
customer's allowance and balance last. Jobs of one customer share both, so no slice of a plan is refused
for lack of credits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from deepgrid.billing.credits import format_credits
from deepgrid.lifecycle.job import Job


@dataclass(frozen=True, slots=True)
class Funds:
    """A customer's allowance for the grid, and the customer's balance, in wei."""

    allowance_wei: int
    balance_wei: int


@dataclass(frozen=True, slots=True)
class Slice:
    """More minutes for a job; the customer pays `cost_wei`."""

    job: Job
    minutes: int
    cost_wei: int


@dataclass(frozen=True, slots=True)
class Unpaid:
    """A job near its end that gets no slice. `reason` is for the customer; it is constant until the limit changes."""

    job: Job
    reason: str


def near_end(jobs: Iterable[Job], slice_minutes: int, ahead_minutes: int, now: int) -> list[Job]:
    """Return jobs with spending authority and at most `ahead_minutes` left at `now` (the chain's time), first end
    first.

    `ahead_minutes` is capped at one slice, because the contract sells no slice earlier.
    """
    ahead = min(ahead_minutes, slice_minutes)
    due = [job for job in jobs if _may_be_topped_up(job) and remaining_minutes(job, now) <= ahead]
    return sorted(due, key=lambda job: (remaining_minutes(job, now), job.id))


def remaining_minutes(job: Job, now: int) -> int:
    """Return the unused minutes of a claimed job. As in the contract, only full minutes count as used."""
    used = max(0, now - job.started_at) // 60 if job.started_at else 0
    return max(0, job.granted_minutes - used)


def plan(due: Iterable[Job], funds: Mapping[str, Funds], slice_minutes: int) -> list[Slice | Unpaid]:
    """Return one slice for each job of `due`, in this order, while its customer's funds last."""
    left = dict(funds)
    planned: list[Slice | Unpaid] = []
    for job in due:
        has, cost = left[job.customer], slice_minutes * job.rate_wei_per_minute
        if cost > min(has.allowance_wei, has.balance_wei):
            planned.append(Unpaid(job, _why(job, has, slice_minutes, cost)))
            continue
        left[job.customer] = Funds(has.allowance_wei - cost, has.balance_wei - cost)
        planned.append(Slice(job, slice_minutes, cost))
    return planned


def _may_be_topped_up(job: Job) -> bool:
    return job.status.claimed and job.delegate_spending and not job.has_cancel_request


def _why(job: Job, has: Funds, minutes: int, cost_wei: int) -> str:
    short, remedy = "the allowance is used up", "raise it with `dps allowance set`"
    if has.allowance_wei >= cost_wei:
        short, remedy = "the credits are used up", "get more"
    return (
        f"{short}: the job ends at its limit of {job.granted_minutes} min;"
        f" to continue it, {remedy} ({minutes} min cost {format_credits(cost_wei)})"
    )
