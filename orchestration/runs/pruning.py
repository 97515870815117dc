"""Old flow runs of the Prefect server: finds and deletes them, with their task runs and log lines.

Only runs in a final state are found, and the server checks the state again when it deletes. Prefect's own vacuum
deletes events, and each day the artifacts of deleted runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import (
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterEndTime,
    FlowRunFilterId,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import TERMINAL_STATES, FlowRun
from prefect.client.schemas.sorting import FlowRunSort

from orchestration import prefect_internals

PAGE = 200
BATCH_SIZE = 50  # the most that the server deletes in one request


async def old_runs(
    client: PrefectClient, before: datetime, *, skip: int = 0, flows: Sequence[str] | None = None
) -> list[FlowRun]:
    """One page of the runs that ended before that time, oldest first, after the first `skip`.

    With `flows`, only runs of the flows with these names.
    """
    named = FlowFilter(name=FlowFilterName(any_=list(flows))) if flows is not None else None
    return await client.read_flow_runs(
        flow_filter=named, flow_run_filter=_ended(before), sort=FlowRunSort.START_TIME_ASC, limit=PAGE, offset=skip
    )


async def delete_runs(client: PrefectClient, runs: Sequence[FlowRun], before: datetime) -> int:
    """Delete those of the runs that still are in a final state since before that time. Returns their number."""
    deleted = 0
    for at in range(0, len(runs), BATCH_SIZE):
        wanted = _ended(before, [run.id for run in runs[at : at + BATCH_SIZE]])
        deleted += await prefect_internals.delete_runs(client, wanted)
    return deleted


def _ended(before: datetime, ids: Sequence[Any] | None = None) -> FlowRunFilter:
    return FlowRunFilter(
        id=FlowRunFilterId(any_=list(ids)) if ids is not None else None,
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=sorted(TERMINAL_STATES))),
        end_time=FlowRunFilterEndTime(before_=before),
    )
