"""Ends or resumes orphaned runs of a work pool, before its process starts any other run.

The runs of a dead process would stay Running forever and keep their concurrency slots. The same holds for runs that
ended while Prefect was down. Only the pool's one process may call `tidy`, as it also ends runs of other live processes.
"""

from __future__ import annotations

import logging
from asyncio import sleep
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from uuid import UUID

from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import TaskRunFilter, TaskRunFilterState, TaskRunFilterStateType
from prefect.client.schemas.objects import FlowRun, State, StateType, TaskRun
from prefect.client.schemas.sorting import FlowRunSort
from prefect.exceptions import ObjectNotFound
from prefect.states import AwaitingRetry, Cancelled, Crashed

from orchestration.outages import is_outage
from orchestration.runs.carrier_table import Carrier, Claim, Step, decide, state_of
from orchestration.runs.filters import UNDER_WAY, flows_named, in_pool, runs_with
from orchestration.runs.flow_runs import put, some_at_once

RESUMED = ("run_job",)  # flows whose runs carry a claim, and continue from what the chain and Slurm say
ENDED = "Nothing carries it any more."
PAGE = 200
ENDINGS_AT_ONCE = 2  # the ends of old task runs are not urgent, and Prefect has the new ones to serve
ENDING_RETRY_S = 2.0

logger = logging.getLogger(__name__)


async def tidy(
    client: PrefectClient, work_pool: str, carried: Collection[UUID], begin: Callable[[FlowRun], None]
) -> list[TaskRun]:
    """End or resume the runs of `work_pool` that Prefect shows as unfinished, except those `carried` at the call.

    `begin` takes a run of a claim that stays Running. If the run's deployment has a limit, it is scheduled again.
    Returns the open task runs of all those runs: a resumed run creates new ones, so end these.
    """
    spared = frozenset(carried)
    flows = await client.read_flows(flow_filter=flows_named(RESUMED))
    with_claim = {flow.id for flow in flows}
    left = [run for run in await runs_in(client, work_pool, *UNDER_WAY) if run.id not in spared]
    tasks = await _open_tasks(client, left)
    steps = {
        run.id: decide(Claim.UNREAD if run.flow_id in with_claim else Claim.NONE, state_of(run), Carrier.FORMER).step
        for run in left
    }
    continued = [run for run in left if steps[run.id] is Step.CONTINUE]
    free = await _without_limit(client, continued)
    others = [run for run in left if run not in free]
    await some_at_once(put(client, run, _state_after(steps[run.id])) for run in others)
    if free:
        logger.info("continuing the runs of %d jobs", len(free))
        for run in free:
            begin(run)
    return tasks


def _state_after(step: Step) -> State[None]:
    if step is Step.CANCEL:
        return Cancelled(message=ENDED)
    if step is Step.CRASH:
        return Crashed(message=ENDED)
    return AwaitingRetry(message="No process carried it any more; it continues.")


async def runs_in(
    client: PrefectClient, work_pool: str, *states: StateType, flows: Sequence[str] = ()
) -> list[FlowRun]:
    """Return all runs of the pool in these states. `flows` limits the result to these flows."""
    found: list[FlowRun] = []
    while True:
        page = await client.read_flow_runs(
            work_pool_filter=in_pool(work_pool),
            flow_filter=flows_named(flows) if flows else None,
            flow_run_filter=runs_with(states=states),
            sort=FlowRunSort.ID_DESC,  # runs made together have equal times, which would mix up the pages
            limit=PAGE,
            offset=len(found),
        )
        found += page
        if len(page) < PAGE:
            return found


async def end_tasks(client: PrefectClient, tasks: Sequence[TaskRun]) -> None:
    """Crash these task runs, through outages of Prefect. Otherwise they would stay open forever."""

    async def end(task_run: TaskRun) -> None:
        while True:
            try:
                with suppress(ObjectNotFound):
                    await client.set_task_run_state(task_run.id, Crashed(message=ENDED), force=True)
                return
            except Exception as error:
                if not is_outage(error):
                    logger.warning("cannot end task run %s, which stays open: %s", task_run.name, error)
                    return
            await sleep(ENDING_RETRY_S)

    await some_at_once(map(end, tasks), ENDINGS_AT_ONCE)


async def _open_tasks(client: PrefectClient, runs: Sequence[FlowRun]) -> list[TaskRun]:
    unended = TaskRunFilter(state=TaskRunFilterState(type=TaskRunFilterStateType(any_=list(UNDER_WAY))))
    found: list[TaskRun] = []
    for at in range(0, len(runs), PAGE):
        of_runs = runs_with(ids=[run.id for run in runs[at : at + PAGE]])
        before = len(found)
        while page := await client.read_task_runs(
            flow_run_filter=of_runs, task_run_filter=unended, limit=PAGE, offset=len(found) - before
        ):
            found += page
    return found


async def _without_limit(client: PrefectClient, runs: Sequence[FlowRun]) -> list[FlowRun]:
    """Return the runs whose deployments have no concurrency limit.

    The others hold leases, which end with their process.
    """
    free: set[UUID] = set()
    for deployment_id in {run.deployment_id for run in runs if run.deployment_id is not None}:
        with suppress(ObjectNotFound):
            if (await client.read_deployment(deployment_id)).global_concurrency_limit is None:
                free.add(deployment_id)
    return [run for run in runs if run.deployment_id in free]
