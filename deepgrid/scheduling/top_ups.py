"""Selects the jobs that get another slice of time from their customers' allowances. Pure.

A slice is the contract's `topUpSliceDurationMin`, or less if the customer's limit for the job has less left. Jobs
that end first get a slice first, while the customer's allowance and balance last. Jobs of one customer share both,
so no slice of a plan is refused for lack of credits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from deepgrid.billing.credits import format_credits
from deepgrid.lifecycle.job import TOP_UP_WINDOW_MINUTES, Job


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

    `ahead_minutes` is capped at one slice and at ten minutes, because the contract sells no slice earlier. It sells
    none after the end of the bought time either.
    """
    ahead = min(ahead_minutes, slice_minutes, TOP_UP_WINDOW_MINUTES)
    due = [
        job for job in jobs if _may_be_topped_up(job) and 0 <= job.granted_minutes - _used_minutes(job, now) <= ahead
    ]
    return sorted(due, key=lambda job: (remaining_minutes(job, now), job.id))


def remaining_minutes(job: Job, now: int) -> int:
    """Return the unused minutes of a claimed job. As in the contract, only full minutes count as used."""
    return max(0, job.granted_minutes - _used_minutes(job, now))


def _used_minutes(job: Job, now: int) -> int:
    return max(0, now - job.started_at) // 60 if job.started_at else 0


def plan(
    due: Iterable[Job], funds: Mapping[str, Funds], spendable_wei: Mapping[int, int], slice_minutes: int
) -> list[Slice | Unpaid]:
    """Return one slice for each job of `due`, in this order, while its customer's funds last.

    `spendable_wei` is what the customer allows for each job.
    """
    left = dict(funds)
    planned: list[Slice | Unpaid] = []
    for job in due:
        has, rate, most = left[job.customer], job.rate_wei_per_minute, spendable_wei.get(job.id, 0)
        if most < rate:
            planned.append(Unpaid(job, _limit_reached(job)))
            continue
        cost = min(slice_minutes * rate, most)
        if cost > min(has.allowance_wei, has.balance_wei):
            planned.append(Unpaid(job, _why(job, has, slice_minutes, cost)))
            continue
        left[job.customer] = Funds(has.allowance_wei - cost, has.balance_wei - cost)
        planned.append(Slice(job, cost // rate if rate else slice_minutes, cost))
    return planned


def _may_be_topped_up(job: Job) -> bool:
    return job.status.claimed and job.delegate_spending and not job.has_cancel_request


def _limit_reached(job: Job) -> str:
    return (
        f"automatic top-ups have taken what you allowed: the job ends at its limit of {job.granted_minutes} min;"
        f" to continue it, allow more with `dps job auto-top-up {job.id} --limit CREDITS`"
    )


def _why(job: Job, has: Funds, minutes: int, cost_wei: int) -> str:
    short, remedy = "the allowance is used up", "raise it with `dps allowance set`"
    if has.allowance_wei >= cost_wei:
        short, remedy = "the credits are used up", "get more"
    return (
        f"{short}: the job ends at its limit of {job.granted_minutes} min;"
        f" to continue it, {remedy} ({minutes} min cost {format_credits(cost_wei)})"
    )
