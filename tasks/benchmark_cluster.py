"""The side effects of `benchmark_cluster`."""

from __future__ import annotations

from collections.abc import Sequence

from prefect.artifacts import acreate_table_artifact

from deepgrid.benchmark.outcome import Comparison
from deepgrid.provider import measurements
from orchestration.retry_policy import side_effect

last_measured = side_effect("read measured labels")(measurements.last_measured)
measure = side_effect("measure {program} of {session.settings.cluster}")(measurements.measure)
propose_if_moved = side_effect("propose what moved")(measurements.propose_if_moved)


@side_effect("show old and new labels")
async def show_comparison(cluster: str, rows: Sequence[Comparison], words: str) -> None:
    """Publish the table of labels as an artifact of the run."""
    table = [{"label": row.key, "was": row.old, "is": row.new, "moved": "yes" if row.moved else ""} for row in rows]
    await acreate_table_artifact(table=table, key=f"benchmark-{cluster}", description=words)
