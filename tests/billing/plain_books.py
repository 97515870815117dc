"""The books in the slow and obvious way: a loop over claims and plain dicts, and every rule applied to every claim."""

from __future__ import annotations

from collections.abc import Iterator

from deepgrid.billing.columns.claim_record import GIVEN_BACK, OPEN, SETTLED, Amounts, ClaimRecord, starts
from deepgrid.billing.entries import Ledger, Purpose, Run, Settlement
from deepgrid.billing.expected import run_minutes
from deepgrid.billing.rules.differences import Side, findings
from deepgrid.billing.rules.kinds import Finding
from deepgrid.lifecycle.ends import is_fault
from deepgrid.lifecycle.job import ANSWER_MINUTES, Job
from deepgrid.lifecycle.minutes import elapsed_minutes
from deepgrid.lifecycle.states import JobStatus


def plain_findings(ledger: Ledger, runs: tuple[Run, ...], provider: str, side: Side) -> set[Finding]:
    """Return all findings on single claims."""
    return {one for claim in plain_claims(ledger, runs, provider) for one in findings(claim, side)}


def plain_claims(ledger: Ledger, runs: tuple[Run, ...], provider: str) -> Iterator[ClaimRecord]:
    """Yield every claim of the provider, and every claim that only Slurm knows."""
    seen = set()
    settled = {one.job_id: one for one in ledger.settlements if ledger.in_period(one.block)}
    ended = {one.job_id for one in ledger.settlements}
    for job in ledger.jobs.values():
        last = settled.get(job.id)
        if last is not None and last.provider == provider:
            seen.add((job.id, job.claimed_at))
            yield _claim(ledger, job, SETTLED, runs, last)
        elif last is None and (job.status.hot or job.id in ended) and _is_held(ledger, job, provider):
            seen.add((job.id, job.claimed_at))
            yield _claim(ledger, job, OPEN, runs, None)
    for claim in ledger.claims:
        back = [one.block for one in ledger.given_back if (one.job_id, one.provider) == (claim.job_id, provider)]
        job = ledger.jobs[claim.job_id]
        if claim.provider != provider or not ledger.in_period(claim.block) or not back or back[-1] < claim.block:
            continue
        if job.claimed_at != claim.at:
            seen.add((job.id, claim.at))
            mine = _runs(runs, job.id, claim.at)
            yield ClaimRecord(
                job.id, claim.at, GIVEN_BACK, job, Amounts(), job.id in ledger.requested, runs=mine, tx=claim.tx_hash
            )
    for key in {(run.job_id, run.claimed_at): None for run in runs}:
        if key not in seen:
            yield ClaimRecord(*key, None, ledger.jobs.get(key[0]), Amounts(), runs=_runs(runs, *key))


def _is_held(ledger: Ledger, job: Job, provider: str) -> bool:
    block = next((one.block for one in ledger.claims if (one.job_id, one.at) == (job.id, job.claimed_at)), 0)
    is_in = ledger.requested.get(job.id, 0) <= ledger.last_block and block <= ledger.last_block
    return job.provider == provider and job.claimed_at > 0 and is_in


def _claim(ledger: Ledger, job: Job, outcome: str, runs: tuple[Run, ...], last: Settlement | None) -> ClaimRecord:
    mine = _runs(runs, job.id, job.claimed_at)
    return ClaimRecord(
        job_id=job.id, claimed_at=job.claimed_at, outcome=outcome, job=job, amounts=_amounts(ledger, job, last),
        requested=job.id in ledger.requested, settlements=sum(one.job_id == job.id for one in ledger.settlements),
        last=last, runs=mine, reported=ledger.reported_too_much.get(job.id),
        expected=_expected(ledger, job, mine) if last is not None else 0, tx=last.tx_hash if last is not None else "",
    )  # fmt: skip


def _runs(runs: tuple[Run, ...], job_id: int, claimed_at: int) -> tuple[Run, ...]:
    mine = [run for run in runs if (run.job_id, run.claimed_at) == (job_id, claimed_at)]
    begun = starts(mine)
    return (*begun, *(run for run in mine if run not in begun))


def _amounts(ledger: Ledger, job: Job, last: Settlement | None) -> Amounts:
    def moved(purpose: Purpose, first: int = ledger.first_block, until: int = ledger.last_block) -> int:
        mine = [one for one in ledger.transfers if (one.job_id, one.purpose) == (job.id, purpose)]
        return sum(one.wei for one in mine if first <= one.block <= until)

    everything = 0, 2**62
    top_up, released = moved(Purpose.TOP_UP), moved(Purpose.RELEASE)
    before = job.released_wei - moved(Purpose.RELEASE, *everything)
    locked = job.locked_wei - moved(Purpose.TOP_UP, ledger.last_block + 1, 2**62) - before
    return Amounts(
        locked=locked, brought_forward=0 if job.id in ledger.requested else locked - top_up,
        paid=last.paid_wei if last else 0, cut=last.cut_wei if last else 0,
        refunded=(last.refunded_wei if last else 0) + released, still_locked=0 if last else locked - released,
        deposit=moved(Purpose.DEPOSIT), top_up=top_up, paid_out=moved(Purpose.PAID),
        refund_out=moved(Purpose.REFUND) + released,
    )  # fmt: skip


def _expected(ledger: Ledger, job: Job, runs: tuple[Run, ...]) -> int:
    begun = starts(runs)
    if job.started_at == 0 or job.status is JobStatus.PANICKED:
        return 0
    is_free = bool(runs) and is_fault((begun or runs)[0].state)
    minutes = min(0 if is_free or not begun else run_minutes(begun[0]), job.granted_minutes)
    if job.ended_at <= job.started_at:
        minutes = 0
    if job.has_cancel_request:
        until = min(job.ended_at, job.cancel_requested_at + 60 * ANSWER_MINUTES)
        minutes = min(minutes, elapsed_minutes(job.started_at, until))
        if job.status is JobStatus.CANCELLED:
            return max(minutes, min(job.fee_minutes, job.granted_minutes))
    return minutes
