"""The runs of `run_job`: which run carries which claim, and how it is started or scheduled again.

The idempotency key and the parameters of a run identify its claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun
from prefect.states import AwaitingRetry

from deepgrid.chain.book import AddressBook
from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.provider.claims.customer_requests import (
    RequestOutcome,
    extend_without_carrier,
    is_at_cluster,
    wake_carrier,
)
from deepgrid.provider.session import ProviderSession
from orchestration.pools import provider_pool
from orchestration.runs.bulk_runs import NewRun, find_or_begin_runs
from orchestration.runs.flow_runs import call_worker, schedule


def run_key(claim: JobKey, provider: str) -> str:
    """Return the idempotency key of the claim's run at the provider with this address."""
    return f"{claim.comment}:{provider}"


def is_key_of(key: str, claim: JobKey) -> bool:
    """Return whether `key` is the idempotency key of the claim's run at any provider."""
    return key.startswith(run_key(claim, ""))


def run_parameters(cluster: str, claim: JobKey) -> dict[str, Any]:
    """Return the parameters of the claim's run."""
    return {"cluster": cluster, "job_id": claim.job_id, "claimed_at": claim.claimed_at}


def carries_claim(run: FlowRun) -> bool:
    """Return whether the run has the parameters that name a claim. Their values may be of any kind."""
    return {"job_id", "claimed_at"} <= run.parameters.keys()


def claim_of(run: FlowRun, book: AddressBook) -> JobKey | None:
    """Return this grid's claim that the run's parameters name. None if there is none: people may enter any values."""
    try:
        job_id, claimed_at = int(run.parameters["job_id"]), int(run.parameters["claimed_at"])
    except (KeyError, TypeError, ValueError):
        return None
    return JobKey(book.chain_id, book.meta_scheduler, job_id, claimed_at)


async def start_job_runs(session: ProviderSession, keys: Sequence[JobKey]) -> list[FlowRun]:
    """Return the runs of these claims. Each is created once, even by several processes."""
    cluster = session.settings.cluster
    runs = [
        NewRun(run_key(key, session.address), f"job {key.job_id} on {cluster}", run_parameters(cluster, key))
        for key in keys
    ]
    return await find_or_begin_runs(f"run_job/{cluster}", runs)


async def schedule_again(session: ProviderSession, run: FlowRun, why: str) -> None:
    """Schedule a run of this cluster again, whatever its state. It continues from what the chain and Slurm say."""
    async with get_client() as client:
        await schedule(client, run.id, AwaitingRetry(message=why))
    call_worker(provider_pool(session.settings.cluster))


async def hand_to_carrier(session: ProviderSession, job: Job) -> RequestOutcome:
    """Have the job's carrier do what its customer requested. Without a carrier, schedule the job's run."""
    if not is_at_cluster(session, job):
        return RequestOutcome.NOTHING_TO_DO
    if wake_carrier(session, job):
        return RequestOutcome.CARRIER_WOKEN
    await _schedule_run(session, job)
    return RequestOutcome.RUN_SCHEDULED


async def have_extended(session: ProviderSession, job: Job) -> RequestOutcome:
    """Have the job's carrier extend its time limit. Without a carrier, extend it here first."""
    if is_at_cluster(session, job) and not session.carries(session.key_of(job)):
        await extend_without_carrier(session, job)
    return await hand_to_carrier(session, job)


async def _schedule_run(session: ProviderSession, job: Job) -> None:
    """Create the claim's run, or schedule it again if it has ended.

    A run that Prefect shows as Running, but whose process is gone, is adopted by the supervisor.
    """
    [run] = await start_job_runs(session, [session.key_of(job)])
    if run.state is not None and run.state.is_final():
        await schedule_again(session, run, "The customer has sent a request for the job.")
