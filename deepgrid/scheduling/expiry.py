"""Selects the jobs that the operator takes back from providers that do not act, or ends. Pure.

The contract sets the earliest possible time. This policy waits longer where the provider may still work
on the job. A provider loses a job that may have run only after a silence of at least a day. A banned provider loses
its waiting jobs at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from deepgrid.lifecycle.job import HELD_FOR_S, Job, Provider
from deepgrid.lifecycle.states import JobStatus

GIVE_UPS_EVERY_S = 300  # jobs that come due within this time are ended together
CLOCKS_DIFFER_S = 60  # at most, between the chain and us; to give a job up too early wastes gas


@dataclass(frozen=True, slots=True)
class Patience:
    """Timeouts for providers.

    `claim_minutes`: the contract's `claimJobTimeout`.
    `silent_hours`: how long a claimed job may be overdue. The contract allows no less than a day.
    `end_running_of_banned`: whether a ban ends running jobs at once, as a panic that refunds them in full.
    """

    claim_minutes: int
    silent_hours: int
    end_running_of_banned: bool = False


@dataclass(frozen=True, slots=True)
class TakeBack:
    """A job to take back. `cluster` is the provider's name, `reason` is for the customer.

    `panic`: the operator ends the job by its own decision, before the contract would let it time out.
    """

    job: Job
    cluster: str
    reason: str
    panic: bool = False


def overdue(jobs: Iterable[Job], providers: Mapping[str, Provider], patience: Patience, now: int) -> list[TakeBack]:
    """Return the jobs whose provider has timed out at `now` (the chain's time), oldest first.

    `providers` maps the addresses of all registered providers. Removed providers are missing.
    """
    found: list[TakeBack] = []
    for job in sorted(jobs, key=lambda job: job.id):
        if job.provider is None or not job.status.hot:
            continue
        provider = providers.get(job.provider)
        panic = _is_panic(job, provider, patience, now)
        if panic or now >= _due_at(job, provider, patience):
            name = provider.name if provider else job.provider
            found.append(TakeBack(job, name, f"{name} {_why(job, provider, patience)}; {_what_next(job)}", panic))
    return found


def gives_up_at(job: Job) -> int:
    """Return the unix time at which the operator gives a pending job up; 0 for never."""
    return full_give_up_time(job.wishes.give_up_at) if job.wishes.give_up_at else 0


def full_give_up_time(wished: int) -> int:
    """Return the full five minutes of the clock that are one to six minutes after this unix time.

    So customers cannot make the operator act more often by their choice of times.
    """
    return -(-(wished + CLOCKS_DIFFER_S) // GIVE_UPS_EVERY_S) * GIVE_UPS_EVERY_S


def in_turns(jobs: Iterable[Job]) -> list[Job]:
    """Return the first job of each customer, then the second of each, and so on; oldest first."""
    before: Counter[str] = Counter()
    turns: list[tuple[int, int, Job]] = []
    for job in sorted(jobs, key=lambda job: job.id):
        turns.append((before[job.customer], job.id, job))
        before[job.customer] += 1
    return [job for *_, job in sorted(turns, key=lambda turn: turn[:2])]


def _due_at(job: Job, provider: Provider | None, patience: Patience) -> int:
    """Unix time at which the job may time out; never earlier than the contract allows."""
    if job.status is JobStatus.META_SCHEDULED:
        return job.assigned_at + 60 * patience.claim_minutes
    if _in_force(provider):
        return _silent_from(job) + 3600 * patience.silent_hours
    waits = job.status is JobStatus.SCHEDULED and not job.has_cancel_request
    return 0 if waits else _silent_from(job) + HELD_FOR_S


def _is_panic(job: Job, provider: Provider | None, patience: Patience, now: int) -> bool:
    if job.status is not JobStatus.RUNNING or _in_force(provider) or not patience.end_running_of_banned:
        return False
    return now < _silent_from(job) + HELD_FOR_S


def _in_force(provider: Provider | None) -> bool:
    return provider is not None and provider.in_force


def _silent_from(job: Job) -> int:
    """Unix time since which a report is due: the job's time was over, or its cancellation was requested."""
    over = (job.started_at or job.claimed_at) + 60 * job.granted_minutes
    return min(over, job.cancel_requested_at) if job.has_cancel_request else over


def _why(job: Job, provider: Provider | None, patience: Patience) -> str:
    if job.status is JobStatus.META_SCHEDULED:
        return f"did not claim it within {patience.claim_minutes} min"
    if provider is None:
        return "has left the grid"
    if not provider.in_force:
        return "is barred from the grid" if provider.banned else "is no longer approved"
    since = "its cancellation was requested" if job.has_cancel_request else "its time was over"
    return f"has been silent for {patience.silent_hours} h since {since}"


def _what_next(job: Job) -> str:
    if job.status is JobStatus.RUNNING:
        return "the job is ended with a full refund"
    return "the job is cancelled with a full refund" if job.has_cancel_request else "the job waits for another cluster"
