"""The side effects of `benchmark_cluster`."""

from __future__ import annotations

from collections.abc import Sequence

from prefect.artifacts import acreate_table_artifact

from deepgrid.benchmark.outcome import Comparison, Outcome
from deepgrid.benchmark.settings import Program
from deepgrid.lifecycle.job import Label
from deepgrid.provider import measurements as benchmarking
from deepgrid.provider import registration
from deepgrid.provider.session import ProviderSession
from runtime.retry_policy import side_effect


@side_effect("read measured labels")
async def last_measured(session: ProviderSession) -> tuple[Label, ...]:
    """What the chain says of the cluster so far."""
    return await benchmarking.last_measured(session)


@side_effect("measure {program} of {cluster}")
async def measure(session: ProviderSession, cluster: str, program: Program) -> Outcome:
    """Run one program as a Slurm job and read its output; an earlier attempt's job ends."""
    return await benchmarking.measure(session, program)


@side_effect("propose what moved")
async def propose_if_moved(
    session: ProviderSession, old: tuple[Label, ...], new: tuple[Label, ...]
) -> registration.Outcome | None:
    """Propose the labels to the operator, if one moved; a second call finds them proposed."""
    return await benchmarking.propose_if_moved(session, old, new)


@side_effect("show old and new labels")
async def show_comparison(cluster: str, rows: Sequence[Comparison], words: str) -> None:
    """Keep the table with the run, for the UI."""
    table = [{"label": row.key, "was": row.old, "is": row.new, "moved": "yes" if row.moved else ""} for row in rows]
    await acreate_table_artifact(table=table, key=f"benchmark-{cluster}", description=words)
