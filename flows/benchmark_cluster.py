"""Measures a cluster with real programs, and proposes the results as labels that customers can ask for."""

from __future__ import annotations

from typing import Annotated

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed
from pydantic import Field

from deepgrid.benchmark.outcome import Outcome, compared, nothing_worked, summary, updated
from deepgrid.benchmark.settings import PROGRAMS, Program
from deepgrid.errors import GridError
from deepgrid.provider.session import ProviderSession
from orchestration import sessions
from tasks.benchmark_cluster import last_measured, measure, propose_if_moved, show_comparison
from tasks.claim_jobs import check_slurm


@flow(name="benchmark_cluster", flow_run_name="benchmark {cluster}", persist_result=False)
async def benchmark_cluster(
    cluster: str, programs: Annotated[list[Program], Field(max_length=len(PROGRAMS))] | None = None
) -> State[None]:
    """Run the programs one after the other. Propose all labels when one moved by more than 5 %.

    If a program fails, its last values are kept and the other programs still run.

    Args:
        cluster: Name of the provider block.
        programs: Programs to run, at most four; empty for all of them. Each may take hours of the cluster.
    """
    async with sessions.provider(cluster) as session:
        await check_slurm(session)
        old = await last_measured(session)
        outcomes = [await _measured(session, program) for program in programs or PROGRAMS]
        new = updated(old, outcomes, session.settings.labels)
        rows = compared(old, new)
        proposed = await propose_if_moved(session, old, new)
        words = summary(rows, outcomes, proposed.standing.value if proposed else "")
        await show_comparison(cluster, rows, words)
    return Failed(message=words) if nothing_worked(outcomes) else Completed(message=words)


async def _measured(session: ProviderSession, program: Program) -> Outcome:
    try:
        return await measure(session, program)
    except GridError as error:
        return Outcome(program, problem=error.message)
