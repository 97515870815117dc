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
from deepgrid.provider.measurements import last_measured, measure, propose_if_moved
from deepgrid.provider.session import ProviderSession
from orchestration import sessions
from orchestration.sessions import BlockName
from tasks.artifacts import publish_labels
from tasks.run_step import run_step


@flow(name="benchmark_cluster", flow_run_name="benchmark {cluster}", persist_result=False)
async def benchmark_cluster(
    cluster: BlockName, programs: Annotated[list[Program], Field(max_length=len(PROGRAMS))] | None = None
) -> State[None]:
    """Run the programs one after the other. Propose all labels when one moved by more than 5 %.

    If a program fails, its last values are kept and the other programs still run.

    Args:
        cluster: Name of the provider block.
        programs: Programs to run, at most five; empty for all of them. Each may take hours of the cluster.
    """
    async with sessions.provider(cluster) as session:
        await run_step(f"check Slurm on {cluster}", session.cluster.health)
        old = await run_step("read measured labels", last_measured, session)
        outcomes = [await _measured(session, program) for program in programs or PROGRAMS]
        new = updated(old, outcomes, session.settings.labels)
        rows = compared(old, new)
        proposed = await run_step("propose what moved", propose_if_moved, session, old, new)
        words = summary(rows, outcomes, proposed.standing.value if proposed else "")
        await run_step("show old and new labels", publish_labels, cluster, rows, words)
    return Failed(message=words) if nothing_worked(outcomes) else Completed(message=words)


async def _measured(session: ProviderSession, program: Program) -> Outcome:
    try:
        return await run_step(f"measure {program} of {session.settings.cluster}", measure, session, program)
    except GridError as error:
        return Outcome(program, problem=error.message)
