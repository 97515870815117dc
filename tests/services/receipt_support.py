"""Receipts of jobs of the fake chain, as their provider signs them."""

from __future__ import annotations

from dataclasses import replace

from deepgrid.billing.entries import Settlement
from deepgrid.chain.job_trail import TOP_UP, Trail, TrailEntry
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.slurm_state import Phase, SlurmJob
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.receipts import Contents, sign_receipt
from deepgrid.services.receipts.making import SettledJob, contents_of, evidence_of, place_of
from deepgrid.services.signing.request_signing import Domain
from tests.services.support import ACCOUNTS, DOMAIN, MemoryChain

CREDIT = 10**18
SLURM = SlurmJob(Phase.ENDED, 17, "COMPLETED", 1_000_000, 1_000_090, nodes="n[1-2]")


def settled_job(chain: MemoryChain, job_id: int = 1) -> Job:
    """Put a job on the chain that finished after two minutes, and that was topped up once."""
    return chain.put(
        job_id, "ab" * 32, JobStatus.FINISHED, locked_wei=30 * CREDIT, final_cost_wei=4 * CREDIT,
        rate_wei_per_minute=2 * CREDIT, granted_minutes=15, started_at=1_000_000, ended_at=1_000_100,
        claimed_at=999_990,
    )  # fmt: skip


def contents(job: Job, domain: Domain = DOMAIN, nodes: str = SLURM.nodes) -> Contents:
    """Return the contents of the job's receipt."""
    provider = job.provider or ""
    settlement = Settlement(
        job.id, provider, job.customer, 2, 38 * CREDIT // 10, 2 * CREDIT // 10, 26 * CREDIT, job.ended_at, 9,
        "0x" + "4" * 64,
    )  # fmt: skip
    trail = Trail(
        (
            TrailEntry("requested", job.submitted_at, 5, 1, "0x" + "1" * 64, 20 * CREDIT),
            TrailEntry("claimed", job.claimed_at, 6, 0, "0x" + "2" * 64),
            TrailEntry(TOP_UP, job.started_at, 7, 3, "0x" + "3" * 64, 10 * CREDIT),
            TrailEntry("settled", job.ended_at, 9, 2, "0x" + "4" * 64, 4 * CREDIT),
        ),
        settlement,
    )
    evidence = evidence_of(SLURM, "billing=1,cpu=1,mem=128M,node=1")
    settled = SettledJob(job, settlement, trail)
    return contents_of(domain, settled, place_of("alpha", "main", nodes), evidence)


def receipt_of(job: Job, signer: str = "provider", **changes: str) -> bytes:
    """Return the receipt of the job, signed by one of the accounts."""
    return sign_receipt(ACCOUNTS[signer], contents(job, **changes))


def at_provider(job: Job, name: str) -> Job:
    """Return the job as if it had run at another provider."""
    return replace(job, provider=ACCOUNTS[name].address)
