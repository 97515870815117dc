"""The in-process worker: a Prefect worker that runs flow runs as coroutines of its own process.

A job that waits in Slurm costs this worker about one megabyte, not a Python process, and a run starts in milliseconds.
Everything else is Prefect's: the work pool, retries from the UI, cancelling, the worker's heartbeat.

Run its loop outside the main thread (see `orchestration.service`): Prefect's engine replaces the SIGTERM handler for
each flow run in a main thread.
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
from prefect.client.schemas.filters import WorkPoolFilter, WorkPoolFilterName
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

from orchestration.engine import STOPPED, SharedProcessEngine, is_running
from orchestration.outages import warn
from orchestration.runs.orphaned_runs import RESUMED, end_tasks, runs_in, skip_overtaken, tidy
from orchestration.server_clock import ServerClock

WORKER_TYPE = "deepgrid"
GATHER_S = 0.1  # runs that are scheduled together are polled together
POLL_PAUSE_S = 0.5  # a burst of runs is polled in portions


class InProcessResult(BaseWorkerResult):
    """Outcome of one run. The engine has reported its state."""


class InProcessWorker(BaseWorker[BaseJobConfiguration, BaseVariables, InProcessResult]):
    """Runs async flows of deployments whose entrypoint is an importable module path."""

    type = WORKER_TYPE
    job_configuration = BaseJobConfiguration
    _description = "Runs many flow runs as coroutines of one process. Used by the supervisor and the operator."

    @classmethod
    def get_default_base_job_template(cls) -> dict[str, Any]:
        """A pool configures nothing about a run, so the server validates nothing per run."""
        return {"job_configuration": {"env": {}}, "variables": {"type": "object", "properties": {}}}

    def __init__(self, work_pool_name: str, may_start: Callable[[], bool] = lambda: True, **options: Any) -> None:
        """`may_start` returns whether this process may start runs of the pool now."""
        super().__init__(work_pool_name, **options)
        self._may_start = may_start
        self._let_go = False
        self._entrypoints: dict[UUID, str] = {}
        self._executing: dict[UUID, anyio.CancelScope] = {}
        self._polling = asyncio.Lock()
        self._look_wanted = asyncio.Event()
        self._clock = ServerClock()
        self._is_tidy = self._has_taken_over = False
        self._ending: set[asyncio.Task[None]] = set()
        self._outage = ""

    async def setup(self) -> None:
        """Prepare to run, with one API client for all runs and no heartbeat threads."""
        await self._exit_stack.enter_async_context(AsyncClientContext())
        self._exit_stack.enter_context(SyncClientContext())  # otherwise the engine makes one per run and never uses it
        self._exit_stack.enter_context(temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}))
        await super().setup()
        self._looking = asyncio.create_task(self._look_when_wanted())
        self._own_context = copy_context()

    async def teardown(self, *exc_info: Any) -> None:
        """Stop polling, and wait for the runs under way."""
        for task in (self._looking, *self._ending):
            task.cancel()
        await super().teardown(*exc_info)

    def look_now(self) -> None:
        """Poll at once. The pool's rules still apply: a paused pool returns no runs.

        The caller may be inside a flow run. The polled runs do not inherit its context.
        """
        self._look_wanted.set()

    def let_go(self) -> None:
        """Report no more states: another process carries the pool's runs from now on."""
        self._let_go = True

    def carries(self, run_id: UUID) -> bool:
        """Whether the run is under way here, or about to be."""
        return run_id in self._submitting_flow_run_ids

    def is_idle(self) -> bool:
        """Whether it carries no run."""
        return not self._submitting_flow_run_ids

    def may_begin(self) -> bool:
        """Whether it accepts runs that the pool has not scheduled: if it may start runs and has no limit."""
        return self._may_start() and self._limiter is None

    def has_taken_over(self) -> bool:
        """Whether it has ended or resumed the runs that a former process left."""
        return self._has_taken_over

    @asynccontextmanager
    async def beginning(self) -> AsyncIterator[Callable[[FlowRun], None]]:
        """A context to create runs in state Running and give them to what it yields. `tidy` waits meanwhile."""
        async with self._polling:
            yield self._begin

    def _begin(self, run: FlowRun) -> None:
        """Start the run as if it had been polled, unless it is under way here."""
        if self.carries(run.id) or self._runs_task_group is None:
            return
        self._submitting_flow_run_ids.add(run.id)
        if self._cancelling_observer is not None:
            self._cancelling_observer.add_in_flight_flow_run_id(run.id)
        # The caller may be inside a flow run, which must not become the parent of this one.
        self._own_context.run(self._runs_task_group.start_soon, self._submit_run, run)

    async def _look_when_wanted(self) -> None:
        while True:
            await self._look_wanted.wait()
            await asyncio.sleep(GATHER_S)
            self._look_wanted.clear()
            await self.get_and_submit_flow_runs()
            await asyncio.sleep(POLL_PAUSE_S)

    async def get_and_submit_flow_runs(self) -> list[FlowRun]:
        """Poll. During an outage of Prefect's API the runs that are carried here go on."""
        async with self._polling:
            if not self._may_start():
                return []
            try:
                if not self._is_tidy:
                    await self._tidy()
                found = await super().get_and_submit_flow_runs()
                self._outage = ""
                return found
            except Exception as error:
                self._note_outage("cannot ask Prefect for runs", error)
                return []

    async def _tidy(self) -> None:
        """End or resume the runs without a process. Their open tasks end beside the runs that start meanwhile."""
        pool = WorkPoolFilter(name=WorkPoolFilterName(any_=[self._work_pool_name]))
        for one in await self.client.read_deployments(work_pool_filter=pool):  # a thousand runs may ask together
            self._entrypoints[one.id] = one.entrypoint or ""
        begin = self._begin if self.may_begin() else None
        tasks = await tidy(self.client, self._work_pool_name, self._submitting_flow_run_ids, begin)
        self._is_tidy = self._has_taken_over = True
        if tasks:
            ending = asyncio.create_task(end_tasks(self.client, tasks))
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

    async def _get_scheduled_flow_runs(self) -> list[WorkerFlowRunResponse]:
        """Runs that are due now. A run that is Pending too early would hold its deployment's only slot."""
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
            self._note_outage("cannot report this worker to Prefect", error)

    def _note_outage(self, what: str, error: Exception) -> None:
        """Log each outage once. Runs may end unreported meanwhile, so `tidy` runs again after the outage."""
        self._is_tidy = False
        if not self._outage:
            warn(self._logger, f"{what}, trying again", error)
        self._outage = repr(error)

    async def _stop_cancelled(self) -> None:
        """Stop runs that were cancelled while Prefect's events did not reach this process."""
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
        """Run the flow to its end in this event loop. The engine reports its states."""
        flow = await self._flow_of(flow_run)
        scope = self._executing.get(flow_run.id, anyio.CancelScope())
        parameters = _parameters(flow, flow_run)
        engine = SharedProcessEngine[Any, Any](
            flow=flow, run=flow_run, parameters=parameters, scope=scope, let_go=lambda: self._let_go,
            continues=flow.name in RESUMED,
        )  # fmt: skip
        engine._flow_run_name_set = _is_named(flow, flow_run, parameters)
        with suppress(Abort, Pause):
            async with engine.start():
                while engine.is_running():
                    async with engine.run_context():
                        await engine.call_flow_fn()  # type: ignore[unused-coroutine]
        return InProcessResult(identifier=str(flow_run.id), status_code=0)

    async def _submit_run(self, flow_run: FlowRun) -> None:
        """Propose Pending, unless the run was created in state Running, then run.

        The stock method makes five more API calls per run, about processes that this worker does not have.
        """
        try:
            if is_running(flow_run) or await self._propose_pending_state(flow_run):
                with anyio.CancelScope() as scope:
                    self._executing[flow_run.id] = scope
                    await self.run(flow_run)
        except Exception as error:
            self._logger.exception("run %s did not start: unexpected error", flow_run.id)
            await self._propose_crashed_state(flow_run, f"The run could not be started: {error}")
        finally:
            self._executing.pop(flow_run.id, None)
            self._release_limit_slot(flow_run.id)
            self._submitting_flow_run_ids.discard(flow_run.id)
            if self._cancelling_observer is not None:
                self._cancelling_observer.remove_in_flight_flow_run_id(flow_run.id)

    async def _setup_cancellation_observer(self) -> None:
        """Always observe cancellations: the runs of this worker have no process of their own that would."""
        if self._cancelling_observer is not None:  # creating settings takes 0.1 s
            return
        with temporary_settings({PREFECT_WORKER_ENABLE_CANCELLATION: True}):
            await super()._setup_cancellation_observer()

    async def _cancel_run(self, flow_run_id: UUID) -> None:
        """Stop a run that was cancelled in the UI, if this process carries it."""
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
    """Whether the run already has the name that the engine would set. That saves a request."""
    return flow.flow_run_name is not None and flow_run.name == resolve_custom_flow_run_name(flow, parameters)


def _parameters(flow: Flow[..., Any], flow_run: FlowRun) -> dict[str, Any]:
    args, kwargs = parameters_to_args_kwargs(flow.fn, flow_run.parameters)
    return get_call_parameters(flow.fn, args, kwargs)


@cache
def _flow(entrypoint: str) -> Flow[..., Any]:
    flow: Flow[..., Any] = load_flow_from_entrypoint(entrypoint, use_placeholder_flow=False)
    # Only a failed run keeps a result, its exception. Without a folder the server is asked for one twice per run.
    results = get_current_settings().results.local_storage_path
    # The server has validated the parameters against their schema. Validating again costs 10 ms per run.
    return flow.with_options(persist_result=False, result_storage=results, validate_parameters=False)


def _due_at(run: FlowRun, now: datetime) -> datetime:
    return run.next_scheduled_start_time or now
