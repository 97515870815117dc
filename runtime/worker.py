"""The in-process worker: a Prefect worker that runs flow runs as coroutines of its own process.

A job that waits in Slurm costs this worker about a megabyte, not a Python process, and a run
starts in milliseconds. Everything else is Prefect's: the work pool, retries from the UI,
cancelling, the worker's heartbeat.

Run its loop outside the main thread (see `runtime.service`): Prefect's engine takes over
SIGTERM for each flow run that it executes in a main thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from datetime import datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID

import anyio
import anyio.abc
from prefect._internal.engine import resolve_custom_flow_run_name
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.responses import WorkerFlowRunResponse
from prefect.context import AsyncClientContext, SyncClientContext
from prefect.exceptions import Abort, Pause
from prefect.flows import Flow, load_flow_from_entrypoint
from prefect.settings import (
    PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
    PREFECT_WORKER_ENABLE_CANCELLATION,
    get_current_settings,
    temporary_settings,
)
from prefect.utilities.callables import get_call_parameters, parameters_to_args_kwargs
from prefect.workers.base import BaseJobConfiguration, BaseVariables, BaseWorker, BaseWorkerResult

from runtime.engine import STOPPED, SharedProcessEngine, is_running
from runtime.orphaned_runs import runs_in, skip_overtaken, tidy
from runtime.outages import warn
from runtime.server_clock import ServerClock

WORKER_TYPE = "deepgrid"
GATHER_S = 0.1  # runs that are scheduled together are asked for together,
LOOK_PAUSE_S = 0.5  # and a burst of them in portions


class InProcessResult(BaseWorkerResult):
    """Outcome of one run; its state was reported by the engine itself."""


class InProcessWorker(BaseWorker[BaseJobConfiguration, BaseVariables, InProcessResult]):
    """Runs async flows of deployments whose entrypoint is an importable module path."""

    type = WORKER_TYPE
    job_configuration = BaseJobConfiguration
    _description = "Runs many flow runs as coroutines of one process. Used by the supervisor and the operator."

    @classmethod
    def get_default_base_job_template(cls) -> dict[str, Any]:
        """Nothing about a run is configurable at the pool, so nothing is checked for each run."""
        return {"job_configuration": {"env": {}}, "variables": {"type": "object", "properties": {}}}

    def __init__(self, work_pool_name: str, may_start: Callable[[], bool] = lambda: True, **options: Any) -> None:
        """`may_start` says whether the pool is this process's to carry just now; while not, nothing new is begun."""
        super().__init__(work_pool_name, **options)
        self._may_start = may_start
        self._let_go = False
        self._entrypoints: dict[UUID, str] = {}
        self._executing: dict[UUID, anyio.CancelScope] = {}
        self._polling = asyncio.Lock()
        self._look_wanted = asyncio.Event()
        self._clock = ServerClock()
        self._is_tidy = False
        self._outage = ""

    async def setup(self) -> None:
        """Prepare to run, with one API client shared by all runs instead of one a run, and no heartbeat threads."""
        await self._exit_stack.enter_async_context(AsyncClientContext())
        self._exit_stack.enter_context(SyncClientContext())  # the engine makes one for each run, and asks it nothing
        self._exit_stack.enter_context(temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}))
        await super().setup()
        self._looking = asyncio.create_task(self._look_when_wanted())
        self._own_context = copy_context()

    async def teardown(self, *exc_info: Any) -> None:
        """Stop looking for runs, and wait for those under way."""
        self._looking.cancel()
        await super().teardown(*exc_info)

    def look_now(self) -> None:
        """Poll at once. What the pool says counts all the same: a paused one hands nothing out.

        Whoever calls may be inside a flow run of its own, of which the polled ones inherit nothing.
        """
        self._look_wanted.set()

    def let_go(self) -> None:
        """Report nothing more on any run: another process carries the pool's runs from now on."""
        self._let_go = True

    def carries(self, run_id: UUID) -> bool:
        """Whether the run is under way here, or about to be."""
        return run_id in self._submitting_flow_run_ids

    def is_idle(self) -> bool:
        """Whether it has no run in hand."""
        return not self._submitting_flow_run_ids

    def may_begin(self) -> bool:
        """Whether it takes runs that nobody scheduled: while the pool is this process's, which has no limit of runs."""
        return self._may_start() and self._limiter is None

    @asynccontextmanager
    async def beginning(self) -> AsyncIterator[Callable[[FlowRun], None]]:
        """To create runs as Running in: nobody tidies them away before they are given to what it yields."""
        async with self._polling:
            yield self._begin

    def _begin(self, run: FlowRun) -> None:
        """Run it, as if it had been polled; one that is under way here is not begun again."""
        if self.carries(run.id) or self._runs_task_group is None:
            return
        self._submitting_flow_run_ids.add(run.id)
        if self._cancelling_observer is not None:
            self._cancelling_observer.add_in_flight_flow_run_id(run.id)
        # Whoever calls may be inside a flow run, which is not this one's parent.
        self._own_context.run(self._runs_task_group.start_soon, self._submit_run, run)

    async def _look_when_wanted(self) -> None:
        while True:
            await self._look_wanted.wait()
            await asyncio.sleep(GATHER_S)
            self._look_wanted.clear()
            await self.get_and_submit_flow_runs()
            await asyncio.sleep(LOOK_PAUSE_S)

    async def get_and_submit_flow_runs(self) -> list[FlowRun]:
        """Poll; Prefect's API may be away for as long as it likes, the runs that are carried here go on."""
        async with self._polling:
            if not self._may_start():
                return []
            try:
                if not self._is_tidy:
                    await tidy(self.client, self._work_pool_name, self._submitting_flow_run_ids)
                    self._is_tidy = True
                found = await super().get_and_submit_flow_runs()
                self._outage = ""
                return found
            except Exception as error:
                self._note_outage("cannot ask Prefect for runs", error)
                return []

    async def _get_scheduled_flow_runs(self) -> list[WorkerFlowRunResponse]:
        """What is due, and nothing ahead of its time: a run that is Pending holds its deployment's only slot."""
        now = await self._clock.now(self.client)
        soon = now + timedelta(seconds=int(self._prefetch_seconds))
        found = await self.client.get_scheduled_flow_runs_for_work_pool(
            self._work_pool_name, list(self._work_queues), soon
        )
        for entry in found:
            if (ahead_s := (_due_at(entry.flow_run, now) - now).total_seconds()) > 0:
                asyncio.get_running_loop().call_later(ahead_s, self.look_now)
        due = [entry for entry in found if _due_at(entry.flow_run, now) <= now]
        runs = [entry.flow_run for entry in due if not self.carries(entry.flow_run.id)]
        skipped = await skip_overtaken(self.client, runs, now)
        return [entry for entry in due if entry.flow_run.id not in skipped]

    async def _sync_and_initialize(self) -> None:
        try:
            await super()._sync_and_initialize()
            if self._is_tidy and self._may_start():
                await self._stop_cancelled()
        except Exception as error:
            self._note_outage("cannot tell Prefect of this worker", error)

    def _note_outage(self, what: str, error: Exception) -> None:
        """Say it once an outage. How a run ended may not have been heard meanwhile: what is left then is put right."""
        self._is_tidy = False
        if not self._outage:
            warn(self._logger, f"{what}, trying again", error)
        self._outage = repr(error)

    async def _stop_cancelled(self) -> None:
        """Stop what was cancelled while Prefect's events did not reach this process."""
        for run in await runs_in(self.client, self._work_pool_name, StateType.CANCELLING):
            if self.carries(run.id):
                await self._cancel_run(run.id)
            else:
                await self._mark_flow_run_as_cancelled(run, {"message": STOPPED})

    async def run(
        self,
        flow_run: FlowRun,
        configuration: BaseJobConfiguration | None = None,
        task_status: anyio.abc.TaskStatus[int] | None = None,
    ) -> InProcessResult:
        """Run the flow to its end in this event loop; the engine reports its states."""
        flow = await self._flow_of(flow_run)
        scope = self._executing.get(flow_run.id, anyio.CancelScope())
        parameters = _parameters(flow, flow_run)
        engine = SharedProcessEngine[Any, Any](
            flow=flow, run=flow_run, parameters=parameters, scope=scope, let_go=lambda: self._let_go
        )
        engine._flow_run_name_set = _is_named(flow, flow_run, parameters)
        with suppress(Abort, Pause):
            async with engine.start():
                while engine.is_running():
                    async with engine.run_context():
                        await engine.call_flow_fn()  # type: ignore[unused-coroutine]
        return InProcessResult(identifier=str(flow_run.id), status_code=0)

    async def _submit_run(self, flow_run: FlowRun) -> None:
        """Propose Pending, unless it was created as Running, then run.

        The stock method makes five more API calls a run, about processes that this worker does not have.
        """
        try:
            if is_running(flow_run) or await self._propose_pending_state(flow_run):
                with anyio.CancelScope() as scope:
                    self._executing[flow_run.id] = scope
                    await self.run(flow_run)
        except Exception as error:
            self._logger.exception("Flow run '%s' could not be run", flow_run.id)
            await self._propose_crashed_state(flow_run, f"The run could not be started: {error}")
        finally:
            self._executing.pop(flow_run.id, None)
            self._release_limit_slot(flow_run.id)
            self._submitting_flow_run_ids.discard(flow_run.id)
            if self._cancelling_observer is not None:
                self._cancelling_observer.remove_in_flight_flow_run_id(flow_run.id)

    async def _setup_cancellation_observer(self) -> None:
        """Always observe: a stock worker leaves running runs to their own processes, here there are none."""
        if self._cancelling_observer is not None:  # settings take a tenth of a second to make
            return
        with temporary_settings({PREFECT_WORKER_ENABLE_CANCELLATION: True}):
            await super()._setup_cancellation_observer()

    async def _cancel_run(self, flow_run_id: UUID) -> None:
        """Stop carrying a run that was cancelled in the UI; a run of another process is not ours to stop."""
        if (scope := self._executing.get(flow_run_id)) is not None:
            scope.cancel()

    async def _flow_of(self, flow_run: FlowRun) -> Flow[..., Any]:
        deployment_id = flow_run.deployment_id
        if deployment_id is None:
            raise ValueError("the run belongs to no deployment")
        if deployment_id not in self._entrypoints:
            deployment = await self.client.read_deployment(deployment_id)
            self._entrypoints[deployment_id] = deployment.entrypoint or ""
        return _flow(self._entrypoints[deployment_id])


def _is_named(flow: Flow[..., Any], flow_run: FlowRun, parameters: dict[str, Any]) -> bool:
    """Whether the run was made with the name that the engine would give it, which spares a request."""
    return flow.flow_run_name is not None and flow_run.name == resolve_custom_flow_run_name(flow, parameters)


def _parameters(flow: Flow[..., Any], flow_run: FlowRun) -> dict[str, Any]:
    args, kwargs = parameters_to_args_kwargs(flow.fn, flow_run.parameters)
    return get_call_parameters(flow.fn, args, kwargs)


@cache
def _flow(entrypoint: str) -> Flow[..., Any]:
    flow: Flow[..., Any] = load_flow_from_entrypoint(entrypoint, use_placeholder_flow=False)
    # Only what failed keeps a result, its exception; with no folder named the server is asked for it twice a run.
    results = get_current_settings().results.local_storage_path
    # The server has checked the parameters against their schema; building the same check takes 10 ms of each run.
    return flow.with_options(persist_result=False, result_storage=results, validate_parameters=False)


def _due_at(run: FlowRun, now: datetime) -> datetime:
    return run.next_scheduled_start_time or now
