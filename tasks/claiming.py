"""The side effects of `claim_jobs`."""

from __future__ import annotations

from collections.abc import Sequence

from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun
from prefect.states import AwaitingRetry

from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.roles.provider import ProviderSession
from deepgrid.roles.registration import Standing, read_versions
from tasks.retrying import side_effect
from tasks.runs import call_worker, find_or_start_run, schedule, some_at_once


@side_effect("check Slurm on {session.settings.cluster}")
async def check_slurm(session: ProviderSession) -> None:
    """Ask the cluster whether it works; a cluster that does not claims nothing."""
    await session.cluster.health()


@side_effect("check approval on {session.settings.cluster}")
async def check_approval(session: ProviderSession) -> Standing:
    """How the provider stands with the operator; one that is not approved gets no jobs."""
    return (await read_versions(session.chain, session.address)).standing


@side_effect("claim jobs on {session.settings.cluster}")
async def claim_waiting(session: ProviderSession) -> list[Job]:
    """Claim what waits in the on-chain queue, in one transaction; none when it is empty."""
    return await session.claim_waiting()


@side_effect("start runs of claimed jobs on {session.settings.cluster}")
async def start_runs(session: ProviderSession, jobs: Sequence[Job]) -> None:
    """Start the flow runs of these claims, some at a time; a second call finds those of the first one."""
    await some_at_once(start_job_run(session, session.key_of(job)) for job in jobs)


def run_key(session: ProviderSession, key: JobKey) -> str:
    """The idempotency key of the claim's run."""
    return f"{key.comment}:{session.address}"


async def start_job_run(session: ProviderSession, key: JobKey) -> FlowRun:
    """The run of the claim, created once, whoever asks."""
    cluster = session.settings.cluster
    return await find_or_start_run(
        f"run_job/{cluster}",
        {"cluster": cluster, "job_id": key.job_id, "claimed_at": key.claimed_at},
        idempotency_key=run_key(session, key),
        name=f"job {key.job_id} on {cluster}",
    )


async def schedule_again(session: ProviderSession, run: FlowRun, why: str) -> None:
    """Let a run of this cluster come again, whatever its state; it goes on from the truth."""
    async with get_client() as client:
        await schedule(client, run.id, AwaitingRetry(message=why))
    call_worker(f"provider-{session.settings.cluster}")
