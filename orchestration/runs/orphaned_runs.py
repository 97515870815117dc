"""Ends or resumes orphaned runs of a work pool, before its process starts any other run.

The runs of a dead process would stay Running forever and keep their concurrency slots. The same holds for runs that
ended while Prefect was down. The run of a job continues where it is, in state Running, without a request. Only the
pool's one process may call `tidy`, as it also ends runs of other live processes.
Runs that became due while no process served the pool would start in one burst; `skip_overtaken` cancels them.
"""

from __future__ import annotations

import json
import logging
from asyncio import sleep
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from datetime import datetime
from uuid import UUID

import httpx
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import (
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterId,
    FlowRunFilterState,
    FlowRunFilterStateType,
    TaskRunFilter,
    TaskRunFilterState,
    TaskRunFilterStateType,
    WorkPoolFilter,
    WorkPoolFilterName,
)
from prefect.client.schemas.objects import FlowRun, State, StateType, TaskRun
from prefect.client.schemas.sorting import FlowRunSort
from prefect.exceptions import ObjectNotFound
from prefect.states import AwaitingRetry, Cancelled, Crashed

from orchestration.outages import is_outage
from orchestration.runs.flow_runs import schedule, some_at_once

RESUMED = ("run_job",)  # flows whose runs continue from what the chain and Slurm say
LEFT = (StateType.PENDING, StateType.RUNNING, StateType.CANCELLING)
ENDED = "Nothing carries it any more."
PAGE = 200
ENDINGS_AT_ONCE = 2  # the ends of old task runs are not urgent, and Prefect has the new ones to serve
ENDING_RETRY_S = 2.0

logger = logging.getLogger(__name__)


async def tidy(
    client: PrefectClient,
    work_pool: str,
    carried: Collection[UUID],
    begin: Callable[[FlowRun], None] | None = None,
) -> list[TaskRun]:
    """End or resume the runs of `work_pool` that Prefect shows as unfinished, except those `carried` at the call.

    `begin` takes a run of a job that stays Running. Without it, and if the run's deployment has a limit, such a run is
    scheduled again. Returns the open task runs of all those runs: a resumed run creates new ones, so end these.
    """
    spared = frozenset(carried)
    flows = await client.read_flows(flow_filter=FlowFilter(name=FlowFilterName(any_=list(RESUMED))))
    continuing = {flow.id for flow in flows}
    left = [run for run in await runs_in(client, work_pool, *LEFT) if run.id not in spared]
    resumed = {run.id for run in left if run.flow_id in continuing}
    tasks = await _open_tasks(client, left)
    running = [run for run in left if run.id in resumed and run.state is not None and run.state.is_running()]
    continued = set() if begin is None else {run.id for run in await _without_limit(client, running)}
    await some_at_once(
        _put(client, run, _state_after_death(run, resumes=run.id in resumed)) for run in left if run.id not in continued
    )
    if begin is not None and continued:
        logger.info("continuing the runs of %d jobs", len(continued))
        for run in running:
            if run.id in continued:
                begin(run)
    return tasks


async def runs_in(
    client: PrefectClient,
    work_pool: str,
    *states: StateType,
    flows: Sequence[str] = (),
) -> list[FlowRun]:
    """All runs of the pool in these states. `flows` limits the result to these flows."""
    wanted = FlowRunFilter(state=FlowRunFilterState(type=FlowRunFilterStateType(any_=list(states))))
    found: list[FlowRun] = []
    while True:
        page = await client.read_flow_runs(
            work_pool_filter=WorkPoolFilter(name=WorkPoolFilterName(any_=[work_pool])),
            flow_filter=FlowFilter(name=FlowFilterName(any_=list(flows))) if flows else None,
            flow_run_filter=wanted,
            sort=FlowRunSort.ID_DESC,  # runs made together have equal times, which would mix up the pages
            limit=PAGE,
            offset=len(found),
        )
        found += page
        if len(page) < PAGE:
            return found


async def skip_overtaken(client: PrefectClient, runs: Sequence[FlowRun], now: datetime) -> set[UUID]:
    """Cancel scheduled runs that are due together with a later run of the same schedule. Returns their ids.

    Otherwise a long downtime, or a long pause of the pool, would end in a burst. Runs that people started stay.
    """
    late = [run for run in runs if run.auto_scheduled and run.expected_start_time and run.expected_start_time <= now]
    late.sort(key=lambda run: run.expected_start_time or now)
    newest = {_work_key(run): run.id for run in late}
    overtaken = [run for run in late if newest[_work_key(run)] != run.id]
    for run in overtaken:
        await _put(client, run, Cancelled(message="Skipped: a later run was due as well."))
    return {run.id for run in overtaken}


def _work_key(run: FlowRun) -> tuple[UUID | None, str]:
    """Runs with equal keys do the same work."""
    return run.deployment_id, json.dumps(run.parameters, sort_keys=True, default=str)


async def end_tasks(client: PrefectClient, tasks: Sequence[TaskRun]) -> None:
    """Crash these task runs, through outages of Prefect. Otherwise they would stay open forever."""

    async def end(task_run: TaskRun) -> None:
        while True:
            try:
                with suppress(ObjectNotFound):
                    await client.set_task_run_state(task_run.id, Crashed(message=ENDED), force=True)
                return
            except httpx.HTTPError as error:
                if not is_outage(error):
                    logger.warning("cannot end task run %s, which stays open: %s", task_run.name, error)
                    return
            await sleep(ENDING_RETRY_S)

    await some_at_once(map(end, tasks), ENDINGS_AT_ONCE)


async def _open_tasks(client: PrefectClient, runs: Sequence[FlowRun]) -> list[TaskRun]:
    unended = TaskRunFilter(state=TaskRunFilterState(type=TaskRunFilterStateType(any_=list(LEFT))))
    found: list[TaskRun] = []
    for at in range(0, len(runs), PAGE):
        of_runs = FlowRunFilter(id=FlowRunFilterId(any_=[run.id for run in runs[at : at + PAGE]]))
        before = len(found)
        while page := await client.read_task_runs(
            flow_run_filter=of_runs, task_run_filter=unended, limit=PAGE, offset=len(found) - before
        ):
            found += page
    return found


async def _without_limit(client: PrefectClient, runs: Sequence[FlowRun]) -> list[FlowRun]:
    """The runs whose deployments have no concurrency limit. The others hold leases, which end with their process."""
    free: set[UUID] = set()
    for deployment_id in {run.deployment_id for run in runs if run.deployment_id is not None}:
        with suppress(ObjectNotFound):
            if (await client.read_deployment(deployment_id)).global_concurrency_limit is None:
                free.add(deployment_id)
    return [run for run in runs if run.deployment_id in free]


def _state_after_death(run: FlowRun, *, resumes: bool) -> State[None]:
    if run.state is not None and run.state.is_cancelling():
        return Cancelled(message=ENDED)
    if resumes:
        return AwaitingRetry(message="No process carried it any more; it continues.")
    return Crashed(message=ENDED)


async def _put(client: PrefectClient, run: FlowRun, state: State[None]) -> None:
    before = run.state.name if run.state else "without a state"
    logger.info("run %s was %s, is now %s: %s", run.name, before, state.name, state.message)
    await schedule(client, run.id, state)
