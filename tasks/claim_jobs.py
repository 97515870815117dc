"""The side effects of `claim_jobs`."""

from __future__ import annotations

from collections.abc import Sequence

from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun
from prefect.states import AwaitingRetry

from deepgrid.chain.offers import Standing, read_versions
from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.provider.session import ProviderSession
from orchestration.pools import provider_pool
from orchestration.retry_policy import side_effect
from orchestration.runs.bulk_runs import NewRun, find_or_begin_runs
from orchestration.runs.flow_runs import call_worker, schedule
from tasks.run_keys import run_key, run_parameters


@side_effect("check Slurm on {session.settings.cluster}")
async def check_slurm(session: ProviderSession) -> None:
    """Check that Slurm answers. A cluster whose Slurm does not answer claims nothing."""
    await session.cluster.health()


@side_effect("check approval on {session.settings.cluster}")
async def check_approval(session: ProviderSession) -> Standing:
    """The provider's standing with the operator. A provider that is not approved gets no jobs."""
    return (await read_versions(session.chain, session.address)).standing


@side_effect("claim jobs on {session.settings.cluster}")
async def claim_waiting(session: ProviderSession) -> list[Job]:
    """Claim jobs from the on-chain queue, in one transaction."""
    return await session.claim_waiting()


@side_effect("start runs of claimed jobs on {session.settings.cluster}")
async def start_runs(session: ProviderSession, jobs: Sequence[Job]) -> None:
    """Start the flow runs of these claims. A second call finds the runs of the first one."""
    await start_job_runs(session, [session.key_of(job) for job in jobs])


async def start_job_runs(session: ProviderSession, keys: Sequence[JobKey]) -> list[FlowRun]:
    """The runs of these claims. Each is created once, whichever process asks."""
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
