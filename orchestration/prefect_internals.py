"""The one door to what Prefect does not document: every such name that this project uses, each with its reason.

No other module imports an undocumented name, overrides a private method of Prefect, or calls an endpoint by its path
(tests/orchestration/test_one_door.py). The tests of this folder run on a real server, and by `./run test --prefect
VERSION` on another release of Prefect.

* `AsyncFlowRunEngine` runs the run of a deployment in this event loop. No public function takes a run that exists and
  lets the caller decide what is reported.
* `AsyncTaskRunEngine`, `Task.create_local_run` and `emit_task_run_state_change_event` call a task without events for
  its creation and for a short time in state Running, as the step that follows the last one of its run. No option of a
  task leaves events out, and none connects tasks that exchange no values.
* `APILogWorker` and `EventsWorker` send what is left when a process ends. Their public exit has no timeout.
* `SyncClientContext` prevents one unused synchronous client per flow run. No setting does.
* `deployments/{id}/create_flow_run/bulk` and `flow_runs/bulk_delete` take many runs in one request. Prefect's client
  has no methods for them yet. Nor has it one for `flow_runs/{id}/graph-v2`, the diagram that the UI draws.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar, cast
from uuid import UUID

import anyio
import httpx
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.actions import DeploymentFlowRunCreate
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.objects import FlowRun, State, TaskRunResult
from prefect.context import SyncClientContext as SyncClientContext
from prefect.events.worker import EventsWorker
from prefect.exceptions import Abort, Pause
from prefect.flow_engine import AsyncFlowRunEngine
from prefect.flows import Flow
from prefect.logging.handlers import APILogWorker
from prefect.states import Cancelled
from prefect.task_engine import AsyncTaskRunEngine
from prefect.tasks import Task
from prefect.utilities.callables import get_call_parameters
from prefect.utilities.engine import emit_task_run_state_change_event

from orchestration.outages import is_outage

STOPPED = (
    "A person stopped this run. If it carries a job, the job itself continues, and the run resumes within minutes."
)
REPORT_RETRY_S = 2.0
CRASH_REPORT_TIMEOUT_S = 3.0
SHORT_TASK_S = 5.0
_CREATE_RUNS: Any = "/deployments/{id}/create_flow_run/bulk"
_DELETE_RUNS: Any = "/flow_runs/bulk_delete"
_GRAPH: Any = "/flow_runs/{id}/graph-v2"

P = ParamSpec("P")
R = TypeVar("R")

# The last task of this context: the ids of its flow run and of the task run.
_last_task: ContextVar[tuple[UUID | None, UUID] | None] = ContextVar("last_task", default=None)


@dataclass(frozen=True)
class Carriage:
    """A run that exists, and how this process carries it: until `scope` is cancelled or it has `let_go` of its runs.

    A run that `continues` stays Running in Prefect when its process ends, and the next process carries it on.
    """

    run: FlowRun
    scope: anyio.CancelScope
    let_go: Callable[[], bool]
    continues: bool


@dataclass
class _Engine(AsyncFlowRunEngine[P, R]):
    """Prefect's engine for a run that exists. It overrides public methods only.

    The engine does not see the run's deployment. It would start a thread with a websocket per run to receive a Suspend
    from the UI, whose start and end block the event loop, and would repeat deployment and queue in each event of each
    task. So a run of this worker ignores Suspend. The events of the run itself come from the server, and name both.

    """

    carriage: Carriage = field(kw_only=True)

    async def create_flow_run(self, client: PrefectClient) -> FlowRun:
        """Return the existing run.

        An engine that gets the run in its constructor updates it on the server with the flow's version and retries.
        This grid's flows have neither, so that request is saved.
        """
        return self.carriage.run.model_copy(
            update={"deployment_id": None, "work_queue_id": None, "work_pool_name": None}
        )

    async def set_state(self, state: State[Any], force: bool = False) -> State[Any]:
        """Report a state. The final state of a run is retried until Prefect answers.

        The engine takes every end from outside for a crash. If this worker was asked to stop the run, the state is
        Cancelled instead. A forced state is reported within CRASH_REPORT_TIMEOUT_S or not at all, so that an outage
        of Prefect does not delay the end of the process.
        """
        is_stopped = self.carriage.scope.cancel_called
        left_open = self.carriage.continues and state.is_crashed() and not is_stopped
        self.short_circuit = self.short_circuit or left_open or self.carriage.let_go()
        if state.is_running() and self.flow_run is not None and is_running(self.flow_run):
            return self.state  # the run was created in that state
        if state.is_crashed() and is_stopped:
            state = Cancelled(message=STOPPED)
        if force:
            with anyio.move_on_after(CRASH_REPORT_TIMEOUT_S):
                return await super().set_state(state, force)
            return state
        while True:
            try:
                return await super().set_state(state, force)
            except httpx.HTTPError as error:
                if not (state.is_final() and is_outage(error)):
                    raise
            await asyncio.sleep(REPORT_RETRY_S)

    @asynccontextmanager
    async def setup_run_context(self, client: PrefectClient | None = None) -> AsyncIterator[None]:
        """Set up the context as Prefect does, without reading the run from the server a second time."""
        known = copy(client or self.client)
        known.read_flow_run = self._known_run  # type: ignore[method-assign]
        async with super().setup_run_context(known):
            yield

    async def _known_run(self, flow_run_id: UUID) -> FlowRun:
        assert self.flow_run is not None
        return self.flow_run


def is_running(run: FlowRun) -> bool:
    """Return whether the run's state is known and is Running."""
    return run.state is not None and run.state.is_running()


async def run_in_process(flow: Flow[..., Any], parameters: dict[str, Any], carriage: Carriage) -> None:
    """Run the flow to its end in this event loop, and report the run's states."""
    engine = _Engine[Any, Any](flow=flow, parameters=parameters, carriage=carriage)
    with suppress(Abort, Pause):
        async with engine.start():
            while engine.is_running():
                async with engine.run_context():
                    await engine.call_flow_fn()  # type: ignore[unused-coroutine]


@dataclass
class _TaskEngine(AsyncTaskRunEngine[P, R]):
    """Prefect's engine for a task that shows it as Running only once it has lasted SHORT_TASK_S.

    A shorter task gets one event instead of two: its end, which has the time of its start.
    """

    _to_report: asyncio.TimerHandle | None = field(default=None, init=False)

    async def set_state(self, state: State[Any], force: bool = False) -> State[Any]:
        """Report a state, the first Running state later and only if no other state has followed."""
        if self._to_report is not None:
            self._to_report.cancel()
        run = self.task_run
        if force or run is None or run.run_count or not state.is_running():
            return await super().set_state(state, force)
        state.state_details.task_run_id, state.state_details.flow_run_id = run.id, run.flow_run_id
        before, run.state = self.state, state
        run.state_id, run.state_type, run.state_name, run.run_count = state.id, state.type, state.name, 1
        self._telemetry.update_state(state)
        self._to_report = asyncio.get_running_loop().call_later(SHORT_TASK_S, self._report_running, before, state)
        return state

    def _report_running(self, before: State[Any], state: State[Any]) -> None:
        assert self.task_run is not None
        self._last_event = emit_task_run_state_change_event(self.task_run, before, state)


async def as_task(task: Task[P, Coroutine[Any, Any, R]], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run the task without an event for its creation, and without one for its beginning if it is short.

    That saves two thirds of the events of most tasks.

    The diagram of the flow run shows the task after the one before it. Tasks that run at the same time all follow the
    same task. Values that tasks exchange are not searched for more connections.
    """
    parameters = get_call_parameters(task.fn, args, kwargs)
    run = await task.create_local_run()
    flow_run, before = _last_task.get() or (None, None)
    if before is not None and flow_run == run.flow_run_id:
        run.task_inputs = {"wait_for": [TaskRunResult(id=before)]}
    _last_task.set((run.flow_run_id, run.id))
    engine = _TaskEngine[Any, Any](task=task, parameters=parameters, task_run=run)
    async with engine.start():
        while engine.is_running():
            await engine.wait_until_ready()
            async with engine.asset_context(), engine.run_context(), engine.transaction_context() as transaction:
                await engine.call_task_fn(transaction)
    return cast(R, await engine.result())


async def create_runs(client: PrefectClient, deployment: UUID, runs: Sequence[DeploymentFlowRunCreate]) -> list[UUID]:
    """Create runs of the deployment in one transaction. Returns their ids, including ids of runs that existed.

    Raises ValueError when the server refuses one.
    """
    new = [run.model_dump(mode="json", exclude_unset=True) for run in runs]
    answer = await client.request("POST", _CREATE_RUNS, path_params={"id": deployment}, json=new)
    results = answer.json()["results"]
    if refused := [one["error"] for one in results if one["status"] != "CREATED"]:
        raise ValueError(refused[0])
    return [UUID(one["flow_run_id"]) for one in results]


async def delete_runs(client: PrefectClient, wanted: FlowRunFilter) -> int:
    """Delete the runs that the filter selects, at most 50 of them. Returns their number."""
    body = {"flow_runs": wanted.model_dump(mode="json", exclude_none=True)}
    answer = await client.request("POST", _DELETE_RUNS, json=body)
    return len(answer.raise_for_status().json()["deleted"])


async def load_diagram(client: PrefectClient, run_id: UUID) -> None:
    """Have the server make the diagram of a run, as the UI does. Raises httpx.HTTPStatusError if it cannot."""
    await client.request("GET", _GRAPH, path_params={"id": run_id})


def drain_queues(timeout_s: float) -> None:
    """Send the log lines and events that wait for Prefect's server. Those that are left after `timeout_s` are lost."""
    for queue in (APILogWorker, EventsWorker):
        queue.drain_all(timeout=timeout_s)
