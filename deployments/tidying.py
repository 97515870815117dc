"""Puts right what the last process of a work pool left behind, before the next one starts any run.

A process that dies tells nobody: its runs would stay Running for ever and keep their concurrency
slots. And what was scheduled while no process lived would start in one burst. Only the pool's one
process may tidy; runs of a live one would be taken from it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime

from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import (
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterId,
    FlowRunFilterNextScheduledStartTime,
    FlowRunFilterState,
    FlowRunFilterStateType,
    TaskRunFilter,
    TaskRunFilterState,
    TaskRunFilterStateType,
    WorkPoolFilter,
    WorkPoolFilterName,
)
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.states import AwaitingRetry, Cancelled, Crashed

RESUMED = ("run_job",)  # flows whose runs go on from what the chain and Slurm say
LEFT = (StateType.PENDING, StateType.RUNNING, StateType.CANCELLING)
ENDED = "The process that carried it ended."
PAGE = 200

logger = logging.getLogger(__name__)


async def tidy(client: PrefectClient, work_pool: str) -> None:
    """End, resume or skip the runs that a dead process left in `work_pool`; repeating it changes nothing."""
    resumed = {run.id for run in await runs_in(client, work_pool, *LEFT, flows=RESUMED)}
    for run in await runs_in(client, work_pool, *LEFT):
        await _end_tasks(client, run)
        await _put(client, run, _after_death(run, resumes=run.id in resumed))
    for run in _all_but_the_newest(await _late(client, work_pool)):
        await _put(client, run, Cancelled(message="Skipped: the process that carries it was down."))


async def runs_in(
    client: PrefectClient,
    work_pool: str,
    *states: StateType,
    flows: Sequence[str] = (),
    before: datetime | None = None,
) -> list[FlowRun]:
    """All runs of the pool in these states, earliest first, of all flows or of these."""
    wanted = FlowRunFilter(state=FlowRunFilterState(type=FlowRunFilterStateType(any_=list(states))))
    if before is not None:
        wanted.next_scheduled_start_time = FlowRunFilterNextScheduledStartTime(before_=before)
    found: list[FlowRun] = []
    while True:
        page = await client.read_flow_runs(
            work_pool_filter=WorkPoolFilter(name=WorkPoolFilterName(any_=[work_pool])),
            flow_filter=FlowFilter(name=FlowFilterName(any_=list(flows))) if flows else None,
            flow_run_filter=wanted,
            sort=FlowRunSort.EXPECTED_START_TIME_ASC,
            limit=PAGE,
            offset=len(found),
        )
        found += page
        if len(page) < PAGE:
            return found


async def _end_tasks(client: PrefectClient, run: FlowRun) -> None:
    """A run that goes on makes new task runs; the old ones would be shown as under way for ever."""
    unended = TaskRunFilter(state=TaskRunFilterState(type=TaskRunFilterStateType(any_=list(LEFT))))
    of_run = FlowRunFilter(id=FlowRunFilterId(any_=[run.id]))
    for task_run in await client.read_task_runs(flow_run_filter=of_run, task_run_filter=unended):
        await client.set_task_run_state(task_run.id, Crashed(message=ENDED), force=True)


def _after_death(run: FlowRun, *, resumes: bool) -> State[None]:
    if run.state is not None and run.state.is_cancelling():
        return Cancelled(message=ENDED)
    if resumes:
        return AwaitingRetry(message="The process that carried it ended; the next one goes on.")
    return Crashed(message=ENDED)


async def _late(client: PrefectClient, work_pool: str) -> list[FlowRun]:
    """Runs that a schedule wanted by now; what people ordered stays."""
    runs = await runs_in(client, work_pool, StateType.SCHEDULED, before=datetime.now(UTC))
    return [run for run in runs if run.auto_scheduled]


def _all_but_the_newest(runs: Sequence[FlowRun]) -> list[FlowRun]:
    """Without the last run of each deployment; `runs` come earliest first."""
    newest = {run.deployment_id: run.id for run in runs}
    return [run for run in runs if newest[run.deployment_id] != run.id]


async def _put(client: PrefectClient, run: FlowRun, state: State[None]) -> None:
    logger.info("%s was left %s: %s", run.name, run.state.name if run.state else "without a state", state.message)
    await client.set_flow_run_state(run.id, state, force=True)
