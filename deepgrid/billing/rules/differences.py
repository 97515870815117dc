"""Finds where Slurm disagrees with the chain about a claim. Each difference has a name, an amount and evidence.

An oddity that needs no action is a note, such as a job that was not billed because its provider failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from deepgrid.billing.columns.claim_record import GIVEN_BACK, OPEN, SETTLED, ClaimRecord, starts
from deepgrid.billing.entries import Run, Span
from deepgrid.billing.expected import run_minutes
from deepgrid.billing.period import format_time
from deepgrid.billing.rules.kinds import Finding, Kind
from deepgrid.billing.rules.money_differences import money_findings
from deepgrid.lifecycle.ends import ENDED_EARLY, REQUEUED, is_fault
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus

CLOCKS_S = 60  # by which the clocks of chain and cluster may differ
_RUNNING = ("RUNNING", "SUSPENDED", "STOPPED")
_OWN_ENDS = (JobStatus.FINISHED, JobStatus.FAILED)
_PROGRAM_ENDED = ("COMPLETED", "FAILED", "OUT_OF_MEMORY")
_HALF = 128  # accounting prints 128 less for exit codes from 128


@dataclass(frozen=True)
class Side:
    """The data against which each claim is checked.

    `has_slurm` is False in the operator's books. If `complete`, a claim without a run never ran. `shared` are the runs,
    as Slurm id and start, that belong to several claims. For `late_s` seconds before the period, rows of accounting can
    have come late. If `partial`, a claim without a run says nothing.
    """

    span: Span
    tolerance_minutes: int = 1
    never_settled_grace_s: int = 3600
    has_slurm: bool = True
    complete: bool = True
    strays_wei: int = 0
    shared: frozenset[tuple[int, int]] = frozenset()
    late_s: int = 0
    partial: bool = False

    @property
    def grace_s(self) -> int:
        """Seconds for which a job may seem to run on after its settlement."""
        return max(CLOCKS_S, 60 * self.tolerance_minutes)


def findings(claim: ClaimRecord, side: Side) -> Iterator[Finding]:
    """Yield all findings on one claim."""
    if claim.outcome in (SETTLED, OPEN):
        yield from money_findings(claim, side.strays_wei)
    if not side.has_slurm:
        return
    if claim.outcome == SETTLED:
        yield from _settled_findings(claim, side)
    elif claim.outcome == OPEN:
        yield from _unsettled_findings(claim, side)
    else:
        yield from _without_settlement(claim, side)
    yield from _twice(claim, side)


# -- settled in the period -------------------------------------------------------------------


def _settled_findings(claim: ClaimRecord, side: Side) -> Iterator[Finding]:
    job, run, billed = claim.job, claim.run, claim.billed
    assert job is not None
    if claim.reported is not None:
        told = f"the provider reported {claim.reported} minutes, more than can have passed; not billed"
        yield _finding(claim, None, told)
    if run is None and side.partial:
        return
    if run is None or run.started_at is None:
        barred = any(one.guarded for one in claim.runs)
        if billed > 0 and not (barred and billed <= claim.expected):
            evidence = f"{_billed_words(claim)}, and Slurm shows no run of it"
            yield _finding(claim, Kind.NO_RUN if side.complete else None, evidence, claim.cost_of(billed))
        return
    after = list(_after_settlement(claim, run, side))
    yield from after or _minutes(claim, run, side)
    if run.started_at < claim.claimed_at - CLOCKS_S:
        evidence = f"claimed at {format_time(claim.claimed_at)}, {_ran(run)}"
        yield _finding(claim, Kind.RAN_EARLY, evidence, claim.cost_of(billed))
    if (run.slurm_id, run.started_at) in side.shared:
        evidence = f"{_billed_words(claim)}, and another claim has the same run: Slurm job {run.slurm_id}"
        yield _finding(claim, Kind.SHARED_RUN, evidence, claim.cost_of(billed))
    yield from _end(claim, run)
    yield from _resources(claim, run)


def _minutes(claim: ClaimRecord, run: Run, side: Side) -> Iterator[Finding]:
    job, billed, expected = claim.job, claim.billed, claim.expected
    assert job is not None
    wei = abs(claim.cost_of(billed) - claim.cost_of(expected))
    evidence = f"{_billed_words(claim)}, {_ran(run)}: {expected} expected"
    if billed > job.granted_minutes and billed > expected:
        yield _finding(claim, Kind.MORE_THAN_BOUGHT, f"{evidence}, {job.granted_minutes} bought", wei)
    elif billed > expected and is_fault(run.state):
        yield _finding(claim, Kind.FAULT_BILLED, evidence, wei)
    elif billed > expected + side.tolerance_minutes:
        yield _finding(claim, Kind.MINUTES, evidence, wei)
    elif billed < expected - side.tolerance_minutes:
        # A provider may always bill less. For its own faults it must.
        free = billed == 0 and job.status is JobStatus.FAILED
        excused = job.status in (JobStatus.PANICKED, JobStatus.CANCELLED) or free
        yield _finding(claim, None if excused else Kind.MINUTES, evidence, wei)
    elif job.status is JobStatus.PANICKED and run_minutes(run) > 0:
        yield _finding(claim, None, f"panicked and not billed, {_ran(run)}")


def _after_settlement(claim: ClaimRecord, run: Run, side: Side) -> Iterator[Finding]:
    """Yield what Slurm did for a job that the chain had settled."""
    job, until = claim.job, side.span.until
    assert job is not None
    assert run.started_at is not None
    last = until if run.ended_at is None else run.ended_at
    wei = claim.cost_of(-(-max(0, last - job.ended_at) // 60))
    settled = f"settled at {format_time(job.ended_at)}"
    if run.started_at > job.ended_at + side.grace_s:
        yield _finding(claim, Kind.RAN_TWICE, f"{settled}, {_ran(run)}", wei)
    elif run.ended_at is not None and run.ended_at > job.ended_at + side.grace_s:
        yield _finding(claim, Kind.RAN_ON, f"{settled}, {_ran(run)}", wei)
    elif run.ended_at is None and run.state in _RUNNING and job.ended_at + side.grace_s < until:
        yield _finding(claim, Kind.STILL_RUNNING, f"{settled}, {_ran(run)}", wei)


def _end(claim: ClaimRecord, run: Run) -> Iterator[Finding]:
    """Yield an end or exit status on chain that is not the one of Slurm."""
    job = claim.job
    assert job is not None
    if run.ended_at is None:
        return
    if not _is_end_of(job, run.state):
        evidence = f"{job.status.words} on chain, {_ran(run)}"
        yield _finding(claim, Kind.ANOTHER_END, evidence, claim.cost_of(claim.billed))
    elif (
        claim.billed
        and job.status in _OWN_ENDS
        and run.state in ("COMPLETED", "FAILED")
        and not same_exit(job.exit_status, run.exit_status)
    ):
        evidence = f"exit status {_exit(job.exit_status)} on chain, {_exit(run.exit_status)} in Slurm, {_ran(run)}"
        yield _finding(claim, Kind.ANOTHER_EXIT, evidence)


def _is_end_of(job: Job, state: str) -> bool:
    """Return whether a job that Slurm ended with this state has its status on chain rightly."""
    match job.status:
        case JobStatus.FINISHED:
            return state == "COMPLETED"
        case JobStatus.FAILED:
            early = state == "TIMEOUT" and job.last_error != ENDED_EARLY.error
            return job.last_error == REQUEUED.error or (state != "COMPLETED" and not early)
        case JobStatus.OUT_OF_CREDITS:
            return state not in _PROGRAM_ENDED
        case JobStatus.CANCELLED:
            return job.has_cancel_request or state not in _PROGRAM_ENDED
    return True


def same_exit(on_chain: int, in_slurm: int) -> bool:
    """Return whether both wait statuses can be of one end. Accounting hides the upper half of exit codes."""
    return on_chain == in_slurm or (on_chain >= _HALF << 8 and on_chain - (_HALF << 8) == in_slurm)


def _resources(claim: ClaimRecord, run: Run) -> Iterator[Finding]:
    """Yield each resource that Slurm gave less of than was sold."""
    if claim.billed == 0 or claim.job is None:
        return
    sold, given = claim.job.definition, run.given
    cpus, paid = sold.ntasks * sold.cpus_per_task, claim.cost_of(claim.billed)
    for kind, unit, wanted, have in (
        (Kind.FEWER_CPUS, "CPUs", cpus, given.cpus),
        (Kind.FEWER_NODES, "nodes", given.wanted_nodes or 0, given.nodes),
        (Kind.FEWER_GPUS, "GPUs", sold.gpus, given.gpus),
        (Kind.LESS_MEMORY, "MB of memory", cpus * sold.mem_per_cpu_mb, given.mem_mb),
    ):
        if have is not None and have < wanted:
            evidence = f"{wanted} {unit} sold, {have} given by Slurm job {run.slurm_id}; {_billed_words(claim)}"
            yield _finding(claim, kind, evidence, paid * (wanted - have) // wanted)


# -- not settled in the period ---------------------------------------------------------------


def _unsettled_findings(claim: ClaimRecord, side: Side) -> Iterator[Finding]:
    job, run = claim.job, claim.run
    assert job is not None
    if not job.status.hot:
        return
    latest = side.span.until - side.never_settled_grace_s
    if run is not None and run.ended_at is not None and run.ended_at < latest:
        evidence = f"still {job.status.words} on chain, {_ran(run)}"
        yield _finding(claim, Kind.NEVER_SETTLED, evidence, claim.cost_of(run_minutes(run)))
    elif job.status is JobStatus.RUNNING and side.complete and job.started_at < latest and not starts(claim.runs):
        evidence = f"running on chain since {format_time(job.started_at)}, and Slurm shows no run of it"
        yield _finding(claim, Kind.NOT_IN_SLURM, evidence, claim.cost_of((side.span.until - job.started_at) // 60))


def _without_settlement(claim: ClaimRecord, side: Side) -> Iterator[Finding]:
    """Yield a claim that was given back, or that only Slurm knows. Nothing should have run for it in the period."""
    run, job = claim.run, claim.job
    if run is None or run.started_at is None:
        return
    if run.started_at >= side.span.until or (run.ended_at is not None and run.ended_at < side.span.since - side.late_s):
        return
    wei = claim.cost_of(run_minutes(run))
    if job is None:
        yield _finding(claim, Kind.NOT_ON_CHAIN, f"the chain has no such job, {_ran(run)}")
    elif claim.outcome == GIVEN_BACK or job.claimed_at != claim.claimed_at:
        yield _finding(claim, Kind.RETURNED_RAN, f"the claim was given back, {_ran(run)}", wei)
    elif job.status.cold:
        yield from _after_settlement(claim, run, side)


def _twice(claim: ClaimRecord, side: Side) -> Iterator[Finding]:
    begun = starts(claim.runs)
    if len(begun) > 1 and any(run.started_at is not None and run.started_at < side.span.until for run in begun[1:]):
        runs = "; ".join(
            f"Slurm job {run.slurm_id} from {format_time(run.started_at)} to {format_time(run.ended_at) or 'now'}"
            for run in begun
        )
        wei = claim.cost_of(sum(map(run_minutes, begun[1:])))
        yield _finding(claim, Kind.RAN_TWICE, f"{len(begun)} runs of one claim: {runs}", wei)


def _billed_words(claim: ClaimRecord) -> str:
    status = claim.job.status.words if claim.job is not None else "unknown"
    return f"billed {claim.billed} {'minute' if claim.billed == 1 else 'minutes'} as {status}"


def _ran(run: Run) -> str:
    begin, end = format_time(run.started_at), format_time(run.ended_at)
    if not begin:
        return "did not run in Slurm"
    which = f"{run.state}, Slurm job {run.slurm_id}"
    return f"ran {run_minutes(run)} in Slurm ({begin} to {end or 'now'} UTC, {which})"


def _exit(status: int) -> str:
    return f"{status >> 8}:{status & 0x7F}"


def _finding(claim: ClaimRecord, kind: Kind | None, evidence: str, wei: int = 0) -> Finding:
    return Finding(claim.job_id, claim.claimed_at, kind, evidence, claim.tx, wei)
