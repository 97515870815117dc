"""Measures a cluster with real programs, and proposes the results as labels that customers can ask for."""

from __future__ import annotations

from typing import Annotated

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed
from pydantic import Field

from deepgrid.benchmark.outcome import Outcome, comparisons, nothing_worked, summary, update_labels
from deepgrid.benchmark.settings import PROGRAMS, Program
from deepgrid.benchmark.trend import drops, last_days, with_drops
from deepgrid.errors import GridError
from deepgrid.provider.benchmark_archive import BenchmarkArchive
from deepgrid.provider.measurements import archive_of, last_measured, measure_and_keep, propose_if_moved
from deepgrid.provider.session import ProviderSession
from orchestration import sessions
from orchestration.sessions import BlockName
from tasks.benchmark_artifacts import publish_labels, publish_trend, tell_drop
from tasks.run_step import run_step


@flow(name="benchmark_cluster", flow_run_name="benchmark {cluster}", persist_result=False)
async def benchmark_cluster(
    cluster: BlockName, programs: Annotated[list[Program], Field(max_length=len(PROGRAMS))] | None = None
) -> State[None]:
    """Run the programs one after the other. Propose all labels when one moved by more than 5 %.

    If a program fails, its last values are kept and the other programs still run. A second run of the same cluster
    waits for the first one. All results are kept. A figure that dropped by more than 15 % marks the cluster degraded.

    Args:
        cluster: Name of the provider block.
        programs: Programs to run, at most five; empty for all of them. Each may take hours of the cluster.
    """
    async with sessions.provider(cluster) as session, archive_of(session).alone(cluster):
        archive = archive_of(session)
        await run_step(f"check Slurm on {cluster}", session.cluster.health)
        old = await run_step("read measured labels", last_measured, session)
        earlier = await run_step("read earlier results", archive.read)
        outcomes = [await _measure(session, archive, program) for program in programs or PROGRAMS]
        results = await run_step("read all results", archive.read)
        own = session.settings.labels
        measured = update_labels(old, outcomes, own)
        keys = [label.key for label in measured]
        dropped = drops(results, keys)
        new = update_labels(with_drops(measured, dropped), (), own)
        rows = comparisons(old, new)
        proposed = await run_step("propose what moved", propose_if_moved, session, old, new)
        degraded = dropped[0].words if dropped else ""
        standing = proposed.standing.value if proposed else ""
        words = summary(rows, outcomes, standing, degraded, last_days(outcomes, earlier))
        await run_step("show old and new labels", publish_labels, cluster, rows, outcomes, results, words)
        await run_step("plot all results", publish_trend, cluster, archive, results)
        before = drops(earlier, keys)
        tell_drop(cluster, before[0].words if before else "", degraded)
    return Failed(message=words) if nothing_worked(outcomes) else Completed(message=words)


async def _measure(session: ProviderSession, archive: BenchmarkArchive, program: Program) -> Outcome:
    try:
        return await run_step(
            f"measure {program} of {session.settings.cluster}", measure_and_keep, session, archive, program
        )
    except GridError as error:
        return Outcome(program, problem=error.message)
