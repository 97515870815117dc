"""Makes the contents of a receipt from what chain and Slurm say of a job that is over. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from deepgrid.billing.entries import Allocation, Settlement
from deepgrid.billing.resource_use import Measured
from deepgrid.chain.job_trail import Trail
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.slurm_state import SlurmJob
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.receipts.chain_check import asked_of, clean, entries_of, times_of
from deepgrid.services.receipts.contents import Contents, Evidence, Minutes, Money, Place
from deepgrid.services.signing.signatures import Domain

LONG_TEXT = 1024
BY_STARTED_MINUTES = (
    "the started minutes of the run in Slurm, without suspensions; no more than passed on chain since the job was"
    " reported running, and no more than the credits bought"
)
NOTHING = "nothing is billed"


@dataclass(frozen=True, slots=True)
class SettledJob:
    """Everything about a job that is over."""

    job: Job
    settlement: Settlement
    trail: Trail


def contents_of(domain: Domain, settled: SettledJob, place: Place, evidence: Evidence) -> Contents:
    """Return what the provider signs."""
    job = settled.job
    return Contents(
        version=1,
        chain_id=domain.chain_id,
        meta_scheduler=domain.verifying_contract,
        job_id=job.id,
        name=clean(job.name),
        customer=job.customer,
        provider=settled.settlement.provider,
        status=job.status.words,
        error=clean(job.last_error, LONG_TEXT),
        asked=asked_of(job),
        place=place,
        times=times_of(job),
        evidence=evidence,
        minutes=Minutes(billed=settled.settlement.billed_minutes, bought=job.granted_minutes, rule=rule_of(job)),
        money=_money(settled),
        transactions=entries_of(settled.trail),
    )


def _money(settled: SettledJob) -> Money:
    job, settlement, added_wei = settled.job, settled.settlement, settled.trail.top_ups_wei
    return Money(
        rate_wei_per_minute=str(job.rate_wei_per_minute),
        deposit_wei=str(job.locked_wei - added_wei),
        top_ups=len(settled.trail.top_ups),
        top_ups_wei=str(added_wei),
        locked_wei=str(job.locked_wei),
        cost_wei=str(job.final_cost_wei),
        paid_wei=str(settlement.paid_wei),
        cut_percent=job.cut_percent,
        cut_wei=str(settlement.cut_wei),
        refunded_wei=str(job.returned_wei),
    )


def rule_of(job: Job) -> str:
    """Return the rule that gives the billed minutes of this job, in words."""
    if job.status is JobStatus.PANICKED:
        return f"the cluster lost the job, or an administrator of the grid ended it: {NOTHING}"
    if not job.started_at:
        return f"the job never ran: {NOTHING}"
    if job.status is JobStatus.CANCELLED:
        return f"{BY_STARTED_MINUTES}; at least the cancellation fee"
    if not job.final_cost_wei and job.rate_wei_per_minute:
        return f"the cluster ended the job, or does not answer for it: {NOTHING}"
    return BY_STARTED_MINUTES


def evidence_of(seen: SlurmJob, tres: str) -> Evidence:
    """Return what Slurm says of the run."""
    return Evidence(
        slurm_id=seen.slurm_id,
        state=clean(seen.state),
        started_at=seen.started_at,
        ended_at=seen.ended_at,
        run_s=seen.run_s,
        exit_status=seen.exit_status,
        tres=clean(tres, LONG_TEXT),
    )


def tres_text(given: Allocation) -> str:
    """Return the resources that Slurm gave to a job, as Slurm writes them: `cpu=4,gres/gpu=1,mem=400M,node=1`."""
    memory = None if given.mem_mb is None else f"{given.mem_mb}M"
    pairs = {"cpu": given.cpus, "gres/gpu": given.gpus or None, "mem": memory, "node": given.nodes}
    return ",".join(f"{name}={value}" for name, value in pairs.items() if value is not None)


def with_use(tres: str, measured: Measured | None) -> str:
    """Return `tres`, the resources of a job, followed by its measured use."""
    return ",".join(filter(None, (tres, measured.tres if measured else "")))


def place_of(cluster: str, partition: str, nodes: str) -> Place:
    """Return where the job ran."""
    return Place(cluster=clean(cluster), partition=clean(partition), nodes=clean(nodes, LONG_TEXT))
