"""The in-process worker: a Prefect worker that runs flow runs as coroutines of its own process.

A job that waits in Slurm costs this worker about one megabyte, not a Python process, and a run starts in milliseconds.
Everything else is Prefect's: the work pool, retries from the UI, cancelling, the worker's heartbeat.

Run its loop outside the main thread (see `orchestration.service`): Prefect's engine replaces the SIGTERM handler for
each flow run in a main thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import copy_context
from functools import cache
from typing import Any
from uuid import UUID

import anyio
import anyio.abc
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.context import AsyncClientContext
from prefect.events.clients import get_events_subscriber
from prefect.events.filters import EventAnyResourceFilter, EventFilter, EventNameFilter
from prefect.exceptions import Abort
from prefect.flows import Flow, load_flow_from_entrypoint
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, get_current_settings, temporary_settings
from prefect.states import Cancelled, Crashed, Pending
from prefect.utilities.callables import get_call_parameters
from prefect.utilities.engine import propose_state
from prefect.workers.base import BaseJobConfiguration, BaseVariables, BaseWorker, BaseWorkerResult

from orchestration.outages import warn
from orchestration.prefect_internals import STOPPED, Carriage, SyncClientContext, is_running, run_in_process
from orchestration.runs.deleted_places import begin_without_deployment
from orchestration.runs.due_runs import DueRuns
from orchestration.runs.filters import in_pool
from orchestration.runs.orphaned_runs import RESUMED, end_tasks, runs_in, tidy

WORKER_TYPE = "deepgrid"
GATHER_S = 0.1  # runs that are scheduled together are polled together
POLL_PAUSE_S = 0.5  # a burst of runs is polled in portions
SUBSCRIBE_RETRY_S = 5.0

logger = logging.getLogger(__name__)


class InProcessResult(BaseWorkerResult):
    """Outcome of one run. The engine has reported its state."""


class InProcessWorker(BaseWorker[BaseJobConfiguration, BaseVariables, InProcessResult]):
    """Runs async flows of deployments whose entrypoint is an importable module path.

    It overrides public methods of Prefect's worker only. The stock worker submits a run with five more requests, about
    processes that this one does not have, and cancels only runs that have not started. So the part between polling
    and running is here: `get_and_submit_flow_runs` is public, and the stock one calls nothing that this one needs.

    Only a process that serves a pool creates one. `prefect worker start` cannot, and must not: it would take the runs
    of that process for orphaned.
    """

    type = WORKER_TYPE
    job_configuration = BaseJobConfiguration

    @classmethod
    def get_description(cls) -> str:
        """Return Prefect's description of this type of worker."""
        return "Runs many flow runs as coroutines of one process. Used by the supervisor and the operator."

    @classmethod
    def get_default_base_job_template(cls) -> dict[str, Any]:
        """Return an empty template: a pool configures nothing about a run, so the server validates nothing per run."""
        return {"job_configuration": {"env": {}}, "variables": {"type": "object", "properties": {}}}

    def __init__(self, pool: str, may_start: Callable[[], bool] = lambda: True, *, name: str | None = None) -> None:
        """`may_start` returns whether this process may start runs of the pool now."""
        super().__init__(pool, name=name)
        self.may_start = may_start
        self._pool = pool
        self._let_go = False
        self._entrypoints: dict[UUID, str] = {}
        self._carried: dict[UUID, anyio.CancelScope] = {}
        self._refused: dict[UUID, str] = {}  # runs that Prefect does not let begin, with the reason
        self._polling = asyncio.Lock()
        self._look_wanted = asyncio.Event()
        self._due_runs = DueRuns(pool, self.look_now)
        self._is_tidy = self._has_taken_over = False
        self._outage = ""
        self._contexts = AsyncExitStack()
        self._runs: anyio.abc.TaskGroup | None = None

    async def setup(self) -> None:
        """Prepare to run, with one API client for all runs and no heartbeat threads."""
        await self._contexts.enter_async_context(AsyncClientContext())
        self._contexts.enter_context(SyncClientContext())
        self._contexts.enter_context(temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}))
        await super().setup()
        self._own_context = copy_context()
        self._contexts.push_async_exit(super().teardown)
        self._background = await self._contexts.enter_async_context(anyio.create_task_group())
        self._contexts.callback(self._background.cancel_scope.cancel)
        self._runs = await self._contexts.enter_async_context(anyio.create_task_group())
        self._background.start_soon(self._look_when_wanted)
        self._background.start_soon(self._watch_cancellations)

    async def teardown(self, *exc_info: Any) -> None:
        """Wait for the runs under way, then stop polling. An error or a cancellation cancels the runs."""
        self._runs = None
        await self._contexts.__aexit__(*exc_info)

    def look_now(self) -> None:
        """Poll at once. The pool's rules still apply: a paused pool returns no runs.

        The caller may be inside a flow run. The polled runs do not inherit its context.
        """
        self._look_wanted.set()

    def let_go(self) -> None:
        """Report no more states: another process carries the pool's runs from now on."""
        self._let_go = True

    def carries(self, run_id: UUID) -> bool:
        """Return whether the run is under way here, or about to be."""
        return run_id in self._carried

    def is_idle(self) -> bool:
        """Return whether it carries no run."""
        return not self._carried

    def has_taken_over(self) -> bool:
        """Return whether it has ended or resumed the runs that a former process left."""
        return self._has_taken_over

    @asynccontextmanager
    async def beginning(self) -> AsyncIterator[Callable[[FlowRun], None]]:
        """Let the caller create runs in state Running and give them to the yielded function. `tidy` waits meanwhile."""
        async with self._polling:
            yield self.begin

    def begin(self, run: FlowRun) -> None:
        """Start the run, unless it is under way here. A worker that does not serve leaves it to the next `tidy`."""
        if self._runs is None or self.carries(run.id):
            return
        self._carried[run.id] = anyio.CancelScope()
        # The caller may be inside a flow run, which must not become the parent of this one.
        self._own_context.run(self._runs.start_soon, self._carry, run)

    async def _look_when_wanted(self) -> None:
        while True:
            await self._look_wanted.wait()
            await asyncio.sleep(GATHER_S)
            self._look_wanted.clear()
            await self.get_and_submit_flow_runs()
            await asyncio.sleep(POLL_PAUSE_S)

    async def get_and_submit_flow_runs(self) -> list[FlowRun]:
        """Poll, and start what is due. During an outage of Prefect's API the runs that are carried here continue."""
        async with self._polling:
            if not self.may_start():
                return []
            try:
                if not self._is_tidy:
                    await self._tidy()
                due = await self._due_runs.read(self.client, self.carries)
            except Exception as error:
                self._note_outage("cannot ask Prefect for runs", error)
                return []
            self._outage = ""
            for run in due:
                self.begin(run)
            return due

    async def _tidy(self) -> None:
        """End or resume the runs without a process. Their open tasks end while other runs start."""
        pool = in_pool(self._pool)
        for one in await self.client.read_deployments(work_pool_filter=pool):  # a thousand runs may ask together
            self._entrypoints[one.id] = one.entrypoint or ""
        tasks = await tidy(self.client, self._pool, self._carried, self.begin)
        self._is_tidy = self._has_taken_over = True
        if tasks:
            self._background.start_soon(end_tasks, self.client, tasks)

    async def sync_with_backend(self) -> None:
        """Send a heartbeat, and find runs that were cancelled while Prefect's events did not reach this process."""
        try:
            await super().sync_with_backend()
            if self._is_tidy and self.may_start():
                for run in await runs_in(self.client, self._pool, StateType.CANCELLING):
                    await self._stop(run)
        except Exception as error:
            self._note_outage("cannot report this worker to Prefect", error)

    def _note_outage(self, what: str, error: Exception) -> None:
        """Log each outage once. Runs may end unreported meanwhile, so `tidy` runs again after the outage."""
        self._is_tidy = False
        if not self._outage:
            warn(logger, f"{what}, trying again", error)
        self._outage = repr(error)

    async def _watch_cancellations(self) -> None:
        """Stop runs that a person cancels, as soon as Prefect says so. Each heartbeat finds what an outage hides."""
        while True:
            try:
                pool = (await self.client.read_work_pool(self._pool)).id
                wanted = EventFilter(
                    event=EventNameFilter(name=["prefect.flow-run.Cancelling"]),
                    any_resource=EventAnyResourceFilter(id=[f"prefect.work-pool.{pool}"]),
                )
                async with get_events_subscriber(filter=wanted) as events:
                    async for event in events:
                        run_id = UUID(event.resource.id.removeprefix("prefect.flow-run."))
                        if self.carries(run_id):  # the event may be from before the run's retry
                            await self._stop(await self.client.read_flow_run(run_id))
            except Exception as error:  # Prefect's client raises many types
                warn(logger, "cannot watch for cancelled runs, trying again", error, logging.DEBUG)
            await asyncio.sleep(SUBSCRIBE_RETRY_S)

    async def _stop(self, run: FlowRun) -> None:
        """Stop a run that a person has cancelled. Its engine reports the end, if this process carries it."""
        if run.state is None or not run.state.is_cancelling():
            return
        if (scope := self._carried.get(run.id)) is not None:
            scope.cancel()
        else:
            await self._report(run, Cancelled(message=STOPPED))

    async def _carry(self, run: FlowRun) -> None:
        """Propose Pending, unless the run is Running already, then run."""
        try:
            if is_running(run) or await self._is_accepted(run):
                with self._carried[run.id]:
                    await self.run(run)
        except Exception as error:
            logger.exception("run %s did not start: unexpected error", run.id)
            await self._report(run, Crashed(message=f"The run could not be started: {error}"))
        finally:
            del self._carried[run.id]

    async def _is_accepted(self, run: FlowRun) -> bool:
        """Return whether Prefect lets the run begin: its limits have a slot, and no person has cancelled it."""
        try:
            try:
                return (await propose_state(self.client, Pending(), flow_run_id=run.id)).is_pending()
            except Abort as reason:
                entrypoint = await begin_without_deployment(self.client, run, self._pool)
                if entrypoint is None and self._refused.get(run.id) != str(reason):
                    logger.info("run %s does not begin: %s", run.id, reason)
                    self._refused[run.id] = str(reason)
                if entrypoint is not None and run.deployment_id is not None:
                    self._entrypoints[run.deployment_id] = entrypoint
                return entrypoint is not None
        except Exception as error:
            self._note_outage("cannot begin a run", error)
        return False

    async def _report(self, run: FlowRun, state: State[Any]) -> None:
        """Set the state of a run that has no engine."""
        try:
            with suppress(Abort):
                await propose_state(self.client, state, flow_run_id=run.id)
        except Exception as error:
            warn(logger, f"cannot report that run {run.id} is {state.name}", error)

    async def run(
        self,
        flow_run: FlowRun,
        configuration: BaseJobConfiguration | None = None,
        task_status: anyio.abc.TaskStatus[int] | None = None,
    ) -> InProcessResult:
        """Run the flow to its end in this event loop. The engine reports its states."""
        # A run that was created in state Running, or is taken over in that state, has its name.
        flow = _flow(await self._entrypoint(flow_run), is_named=is_running(flow_run))
        carriage = Carriage(flow_run, self._carried[flow_run.id], lambda: self._let_go, flow.name in RESUMED)
        await run_in_process(flow, get_call_parameters(flow.fn, (), flow_run.parameters), carriage)
        return InProcessResult(identifier=str(flow_run.id), status_code=0)

    async def _entrypoint(self, run: FlowRun) -> str:
        if run.deployment_id is None:
            raise ValueError("the run belongs to no deployment")
        if run.deployment_id not in self._entrypoints:
            deployment = await self.client.read_deployment(run.deployment_id)
            self._entrypoints[run.deployment_id] = deployment.entrypoint or ""
        return self._entrypoints[run.deployment_id]


@cache
def _flow(entrypoint: str, *, is_named: bool) -> Flow[..., Any]:
    flow: Flow[..., Any] = load_flow_from_entrypoint(entrypoint, use_placeholder_flow=False)
    # Only a failed run keeps a result, its exception. Without a folder the server is asked for one twice per run.
    results = get_current_settings().results.local_storage_path
    # The server has validated the parameters against their schema. Validating again costs 10 ms per run.
    flow = flow.with_options(persist_result=False, result_storage=results, validate_parameters=False)
    if is_named:  # the engine need not set the name again, which is a request
        flow.flow_run_name = None
    return flow
