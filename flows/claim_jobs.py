"""Claims the jobs in a provider's on-chain queue, and starts a `run_job` flow run for each."""

from __future__ import annotations

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from deepgrid.chain.offers import read_versions
from orchestration import sessions
from orchestration.claiming_pause import why_closed
from orchestration.sessions import BlockName
from tasks.action_report import idle
from tasks.job_runs import start_job_runs
from tasks.run_step import run_step


@flow(name="claim_jobs", flow_run_name="claim jobs for {cluster}", persist_result=False)
async def claim_jobs(cluster: BlockName) -> State[None]:
    """Claim the jobs that were assigned to this cluster.

    It claims nothing while Slurm does not answer, while the cluster is drained, or while the grid is closed. It also
    claims nothing while the cluster lacks guards that strangers' jobs need (see `dps provider doctor`).

    Args:
        cluster: Name of the provider block.
    """
    claimed: list[int] = []
    async with sessions.provider(cluster) as session:
        await run_step(f"check Slurm on {cluster}", session.cluster.health)
        while not (closed := await run_step(f"check that {cluster} takes jobs", why_closed, session)):
            if not (jobs := await run_step(f"claim jobs on {cluster}", session.claim_waiting)):
                break
            keys = [session.key_of(job) for job in jobs]
            await run_step(f"start runs of claimed jobs on {cluster}", start_job_runs, session, keys)
            claimed += [job.id for job in jobs]
        if not claimed and closed:
            return idle(f"Nothing was claimed: {closed}.")
        if not claimed:
            name = f"check approval on {cluster}"
            standing = (await run_step(name, read_versions, session.chain, session.address)).standing
            why = "" if standing.in_force else f": the provider {standing.value}"
            return idle(f"Nothing to claim{why}.")
    return Completed(message=f"Claimed job {', '.join(map(str, claimed))}.")
