"""Plants one difference of a kind in a history, so that every record but the one in question stays as it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from deepgrid.billing.entries import Allocation, Purpose, Run, Settlement, Transfer
from deepgrid.billing.formulas import bill
from deepgrid.billing.rules.kinds import Kind
from tests.billing.histories import CREDIT, CUT_PERCENT, MIDNIGHT, History, Plan, S

GROUP = 8  # bills that are a minute too high
LATE = 120  # jobs that end just after a minute began
HOUR = 3600
BASE = Plan(submit=MIDNIGHT + 2 * HOUR, ran_s=600, locked=200 * CREDIT)
SOLD = replace(BASE.asked, ntasks=2, cpus_per_task=4, mem_per_cpu_mb=500, gpus=2)
RICH = Allocation(cpus=8, nodes=2, mem_mb=4000, gpus=2, wanted_nodes=2)


def plant(made: History, kind: Kind) -> set[int]:
    """Add jobs with a difference of this kind. Returns their numbers."""
    if kind is Kind.A_MINUTE_TOO_MUCH:
        return {_billed(made, BASE, 1) for _ in range(GROUP)}
    if kind is Kind.LATE_ENDS:
        return {made.add(replace(BASE, ran_s=61, customer="0xPunctual")) for _ in range(LATE)}
    if kind is Kind.SHARED_RUN:
        one, other = made.add(BASE), made.add(BASE)
        change_run(made, other, slurm_id=run_of(made, one).slurm_id)
        return {one, other}
    if kind is Kind.NOT_ON_CHAIN:
        job_id = 10**6 + len(made.runs)
        made.runs.append(Run(job_id, MIDNIGHT, job_id, "COMPLETED", MIDNIGHT + HOUR, MIDNIGHT + 2 * HOUR))
        return {job_id}
    return {_PLANTED[kind](made)}


def run_of(made: History, job_id: int) -> Run:
    """Return the last run of a job."""
    return next(run for run in reversed(made.runs) if run.job_id == job_id)


def change_run(made: History, job_id: int, **changes: object) -> int:
    """Change the run of a job."""
    run = run_of(made, job_id)
    made.runs[made.runs.index(run)] = replace(run, **changes)  # type: ignore[arg-type]
    return job_id


def change_settlement(made: History, job_id: int, **changes: object) -> int:
    """Change the settlement of a job."""
    at = next(at for at, one in enumerate(made.settlements) if one.job_id == job_id)
    made.settlements[at] = replace(made.settlements[at], **changes)  # type: ignore[arg-type]
    return job_id


def settlement_of(made: History, job_id: int) -> Settlement:
    """Return the settlement of a job."""
    return next(one for one in made.settlements if one.job_id == job_id)


def move_more(made: History, job_id: int, purpose: Purpose, wei: int) -> int:
    """Let the token move more for a purpose than before."""
    at = next(at for at, one in enumerate(made.transfers) if (one.job_id, one.purpose) == (job_id, purpose))
    moved: Transfer = made.transfers[at]
    made.transfers[at] = replace(moved, wei=moved.wei + wei)
    return job_id


def bill_minutes(made: History, job_id: int, minutes: int) -> int:
    """Let a settlement bill these minutes, with transfers that match."""
    old, job = settlement_of(made, job_id), made.jobs[job_id]
    parts = bill(minutes, job.rate_wei_per_minute, job.locked_wei, CUT_PERCENT)
    made.platform_cut += parts.cut - old.cut_wei
    change_settlement(
        made, job_id, billed_minutes=minutes, paid_wei=parts.paid, cut_wei=parts.cut, refunded_wei=parts.refunded
    )
    for purpose, payee, wei in (
        (Purpose.PAID, old.provider, parts.paid),
        (Purpose.REFUND, job.customer, parts.refunded),
    ):
        standing = [one for one in made.transfers if (one.job_id, one.purpose) == (job_id, purpose)]
        made.transfers = [one for one in made.transfers if one not in standing]
        made.balance += sum(one.wei for one in standing)
        if wei:
            made.move(purpose, job_id, "", payee, wei, old.at)
    return job_id


def _billed(made: History, plan: Plan, more: int) -> int:
    job_id = made.add(plan)
    return bill_minutes(made, job_id, settlement_of(made, job_id).billed_minutes + more)


def _given(made: History, **less: int) -> int:
    return change_run(made, made.add(replace(BASE, asked=SOLD)), given=replace(RICH, **less))


def _without_run(made: History, plan: Plan) -> int:
    job_id = made.add(plan)
    made.runs.remove(run_of(made, job_id))
    return job_id


def _ran_twice(made: History) -> int:
    job_id = made.add(BASE)
    run = run_of(made, job_id)
    made.runs.append(
        replace(run, slurm_id=10**6 + job_id, started_at=MIDNIGHT + 9 * HOUR, ended_at=MIDNIGHT + 10 * HOUR)
    )
    return job_id


def _ran_on(made: History, **changes: object) -> int:
    return change_run(made, made.add(BASE), **changes)


def _returned(made: History) -> int:
    job_id = made.add(replace(BASE, end=S.PENDING))
    made.give_back(job_id)
    at = made.claims[-1].at
    made.runs.append(Run(job_id, at, 10**6 + job_id, "COMPLETED", at + 5, at + 600))
    return job_id


def _early(made: History) -> int:
    job_id = made.add(BASE)
    begin = made.jobs[job_id].claimed_at - HOUR
    return change_run(made, job_id, started_at=begin, ended_at=begin + BASE.ran_s)


def _settled_twice(made: History) -> int:
    job_id = made.add(BASE)
    made.settlements.append(settlement_of(made, job_id))
    return job_id


def _divided(made: History) -> int:
    job_id = move_more(made, made.add(BASE), Purpose.REFUND, -7)
    return change_settlement(made, job_id, refunded_wei=settlement_of(made, job_id).refunded_wei - 7)


def _terms(made: History) -> int:
    job_id = move_more(made, made.add(BASE), Purpose.PAID, 7)
    end = settlement_of(made, job_id)
    return change_settlement(made, job_id, paid_wei=end.paid_wei + 7, cut_wei=end.cut_wei - 7)


_PLANTED: dict[Kind, Callable[[History], int]] = {
    Kind.MINUTES: lambda made: _billed(made, BASE, 3),
    Kind.MORE_THAN_BOUGHT: lambda made: _billed(made, replace(BASE, ran_s=300, locked=10 * CREDIT), 8),
    Kind.FAULT_BILLED: lambda made: change_run(made, made.add(replace(BASE, end=S.FAILED)), state="NODE_FAIL"),
    Kind.NO_RUN: lambda made: _without_run(made, BASE),
    Kind.RAN_TWICE: _ran_twice,
    Kind.RAN_ON: lambda made: _ran_on(made, ended_at=MIDNIGHT + 5 * HOUR),
    Kind.STILL_RUNNING: lambda made: _ran_on(made, ended_at=None, state="RUNNING"),
    Kind.NEVER_SETTLED: lambda made: change_run(
        made, made.add(replace(BASE, end=S.RUNNING)), state="COMPLETED", ended_at=MIDNIGHT + 5 * HOUR
    ),
    Kind.NOT_IN_SLURM: lambda made: _without_run(made, replace(BASE, end=S.RUNNING)),
    Kind.RETURNED_RAN: _returned,
    Kind.RAN_EARLY: _early,
    Kind.ANOTHER_END: lambda made: _ran_on(made, state="FAILED", exit_status=256),
    Kind.ANOTHER_EXIT: lambda made: change_run(made, made.add(replace(BASE, end=S.FAILED)), exit_status=512),
    Kind.FEWER_CPUS: lambda made: _given(made, cpus=6),
    Kind.FEWER_NODES: lambda made: _given(made, nodes=1),
    Kind.FEWER_GPUS: lambda made: _given(made, gpus=1),
    Kind.LESS_MEMORY: lambda made: _given(made, mem_mb=3999),
    Kind.SETTLED_TWICE: _settled_twice,
    Kind.DEPOSIT: lambda made: move_more(made, made.add(BASE), Purpose.DEPOSIT, 7),
    Kind.DIVISION: _divided,
    Kind.TERMS: _terms,
    Kind.TRANSFERS: lambda made: move_more(made, made.add(BASE), Purpose.PAID, -7),
    Kind.REFUND: lambda made: move_more(made, made.add(BASE), Purpose.REFUND, -7),
}
