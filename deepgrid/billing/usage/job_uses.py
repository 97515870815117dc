"""The jobs of a period, from the claims of the books: their money, their time in use, their waits and their ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from deepgrid.billing.columns.claim_record import GIVEN_BACK, SETTLED
from deepgrid.billing.columns.claims import claims_of, records
from deepgrid.billing.entries import Ledger, Span
from deepgrid.billing.usage.capacity import Capacity, overlap_s
from deepgrid.lifecycle.decide import LOST
from deepgrid.lifecycle.ends import BY_ERROR
from deepgrid.lifecycle.exits import exit_words
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus

CAUSES = frozenset({*BY_ERROR, LOST})
NO_CLUSTER = ""  # of jobs that ended before a cluster had them


class End(StrEnum):
    """How a job ended, and by whose fault."""

    FINISHED = "finished"
    FAILED = "failed by itself"
    CLUSTER_FAILED = "failed by the cluster"
    NOT_STARTED = "failed before its start"
    OUT_OF_CREDITS = "out of credits"
    CANCELLED = "cancelled while it ran"
    CANCELLED_EARLY = "cancelled before its start"
    PANICKED = "panicked"

    @property
    def is_failure(self) -> bool:
        return self in (End.FAILED, End.CLUSTER_FAILED, End.NOT_STARTED, End.PANICKED)


@dataclass(frozen=True, slots=True)
class JobUse:
    """A job in the period: settled in it, or open at its end. Times are unix seconds, 0 for those that have not come.

    The money is what moved in the period. A wait is None unless it ended in the period. `cluster` is an address.
    `cause` is the cause of the end, if it is a known one; `error` is a text that the provider wrote.
    """

    job_id: int
    customer: str
    cluster: str
    settled_at: int
    status: str
    end: End | None
    cause: str
    exit: str
    error: str
    requested_at: int
    claimed_at: int
    started_at: int
    ended_at: int
    to_claim_s: int | None
    to_start_s: int | None
    billed_minutes: int
    paid_wei: int
    cut_wei: int
    refunded_wei: int
    still_locked_wei: int
    used_s: Capacity
    ran_until: int
    tx: str


def job_uses(ledger: Ledger, span: Span, provider: str | None) -> Iterator[JobUse]:
    """Yield the jobs that were settled in the span or are open at its end, of `provider` or of all."""
    billed = {one.job_id: one.billed_minutes for one in ledger.settlements}  # also after the period
    settled_at = {one.job_id: one.at for one in ledger.settlements if ledger.in_period(one.block)}
    claims = claims_of(ledger, provider=provider)
    for claim in records(claims, np.arange(len(claims.job_id))):
        if claim.outcome == GIVEN_BACK:
            continue
        job = ledger.jobs[claim.job_id]
        is_settled, amounts = claim.outcome == SETTLED, claim.amounts
        ran_until = _ran_until(job, billed.get(job.id, 0), span)
        yield JobUse(
            job_id=job.id,
            customer=job.customer,
            cluster=claim.provider if job.provider else NO_CLUSTER,
            settled_at=settled_at.get(job.id, 0),
            status=claim.status,
            end=_end(job, claim.billed) if is_settled else None,
            cause=job.last_error if is_settled and job.last_error in CAUSES else "",
            exit=exit_words(job) if is_settled else "",
            error=job.last_error if is_settled else "",
            requested_at=job.submitted_at,
            claimed_at=job.claimed_at,
            started_at=job.started_at,
            ended_at=job.ended_at,
            to_claim_s=_wait_s(job.submitted_at, job.claimed_at, span),
            to_start_s=_wait_s(job.submitted_at, job.started_at, span),
            billed_minutes=claim.billed,
            paid_wei=amounts.paid,
            cut_wei=amounts.cut,
            refunded_wei=amounts.refunded,
            still_locked_wei=amounts.still_locked,
            used_s=Capacity.of_job(job.definition) * overlap_s(job.started_at, ran_until, span),
            ran_until=ran_until,
            tx=claim.tx,
        )


def _ran_until(job: Job, billed_minutes: int, span: Span) -> int:
    """Return when the job stopped using its nodes, as the chain shows it; at most the end of the span.

    A supervisor that was down settles late. So a billed job ran no longer than its bill, and any job no longer than
    its credits allowed.
    """
    if not job.started_at:
        return 0
    most = billed_minutes or job.granted_minutes
    ended_at = job.ended_at if job.status.cold else span.until
    return min(ended_at, job.started_at + 60 * most, span.until)


def _wait_s(since: int, until: int, span: Span) -> int | None:
    return max(0, until - since) if span.since <= until < span.until else None


def _end(job: Job, billed: int) -> End:
    match job.status:
        case JobStatus.FINISHED:
            return End.FINISHED
        case JobStatus.OUT_OF_CREDITS:
            return End.OUT_OF_CREDITS
        case JobStatus.CANCELLED:
            return End.CANCELLED if job.started_at else End.CANCELLED_EARLY
        case JobStatus.FAILED if not job.started_at:
            return End.NOT_STARTED
        case JobStatus.FAILED:  # no minute is billed if the fault is the cluster's
            return End.FAILED if billed else End.CLUSTER_FAILED
        case _:
            return End.PANICKED
