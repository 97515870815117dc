"""Which run of `run_job` carries which claim: by its idempotency key, and by its parameters."""

from __future__ import annotations

from typing import Any

from prefect.client.schemas.objects import FlowRun

from deepgrid.chain.book import AddressBook
from deepgrid.lifecycle.job import JobKey


def run_key(claim: JobKey, provider: str) -> str:
    """The idempotency key of the claim's run at the provider with this address."""
    return f"{claim.comment}:{provider}"


def is_key_of(key: str, claim: JobKey) -> bool:
    """Whether `key` is the idempotency key of the claim's run at any provider."""
    return key.startswith(run_key(claim, ""))


def run_parameters(cluster: str, claim: JobKey) -> dict[str, Any]:
    """The parameters of the claim's run."""
    return {"cluster": cluster, "job_id": claim.job_id, "claimed_at": claim.claimed_at}


def carries_claim(run: FlowRun) -> bool:
    """Whether the run has the parameters that name a claim. Their values may be of any kind."""
    return {"job_id", "claimed_at"} <= run.parameters.keys()


def claim_of(run: FlowRun, book: AddressBook) -> JobKey | None:
    """The claim on this grid that the run's parameters name; None if they name none, as a person may enter others."""
    try:
        job_id, claimed_at = int(run.parameters["job_id"]), int(run.parameters["claimed_at"])
    except (KeyError, TypeError, ValueError):
        return None
    return JobKey(book.chain_id, book.meta_scheduler, job_id, claimed_at)
