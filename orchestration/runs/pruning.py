"""Old flow runs of the Prefect server: finds and deletes them, with their task runs and log lines.

Only runs in a final state are found, and the server checks the state again when it deletes. Prefect's own vacuum
deletes events, and each day the artifacts of deleted runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import TERMINAL_STATES, FlowRun
from prefect.client.schemas.sorting import FlowRunSort

from orchestration import prefect_internals
from orchestration.runs.filters import flows_named, runs_with

ENDS = sorted(TERMINAL_STATES)
PAGE = 200
BATCH_SIZE = 50  # the most that the server deletes in one request


async def old_runs(
    client: PrefectClient, before: datetime, *, skip: int = 0, flows: Sequence[str] | None = None
) -> list[FlowRun]:
    """Return one page of the runs that ended before that time, oldest first, after the first `skip`.

    With `flows`, only runs of the flows with these names.
    """
    return await client.read_flow_runs(
        flow_filter=None if flows is None else flows_named(flows),
        flow_run_filter=runs_with(states=ENDS, ended_before=before),
        sort=FlowRunSort.START_TIME_ASC,
        limit=PAGE,
        offset=skip,
    )


async def delete_runs(client: PrefectClient, runs: Sequence[FlowRun], before: datetime) -> int:
    """Delete the runs that are still in a final state since before that time. Returns their number."""
    deleted = 0
    for at in range(0, len(runs), BATCH_SIZE):
        ids = [run.id for run in runs[at : at + BATCH_SIZE]]
        wanted = runs_with(ids=ids, states=ENDS, ended_before=before)
        deleted += await prefect_internals.delete_runs(client, wanted)
    return deleted
