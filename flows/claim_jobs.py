"""Claims the jobs in a provider's on-chain queue, and starts a `run_job` flow run for each."""

from __future__ import annotations

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from orchestration import sessions
from orchestration.claiming_pause import why_closed
from tasks.claim_jobs import check_approval, check_slurm, claim_waiting, start_runs


@flow(name="claim_jobs", flow_run_name="claim jobs for {cluster}", persist_result=False)
async def claim_jobs(cluster: str) -> State[None]:
    """Claim the jobs that were assigned to this cluster.

    It claims nothing while Slurm does not answer, while the cluster is drained, or while the grid is closed. It also
    claims nothing while the cluster lacks guards that strangers' jobs need (see `dps provider doctor`).

    Args:
        cluster: Name of the provider block.
    """
    claimed: list[int] = []
    async with sessions.provider(cluster) as session:
        await check_slurm(session)
        while not (closed := await why_closed(session)) and (jobs := await claim_waiting(session)):
            await start_runs(session, jobs)
            claimed += [job.id for job in jobs]
        if not claimed and closed:
            return Completed(message=f"Nothing was claimed: {closed}.")
        if not claimed:
            standing = await check_approval(session)
            why = "" if standing.in_force else f": the provider {standing.value}"
            return Completed(message=f"Nothing to claim{why}.")
    return Completed(message=f"Claimed job {', '.join(map(str, claimed))}.")
