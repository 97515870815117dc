"""Prefect's engine for flow runs that share one process and its event loop with hundreds of others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

import anyio
import httpx
from prefect._flow_run_suspension import FlowRunSuspensionRequest
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import FlowRun, State
from prefect.flow_engine import AsyncFlowRunEngine
from prefect.states import Cancelled

from orchestration.outages import is_outage

STOPPED = "Carrying was stopped; the job itself goes on."
REPORT_RETRY_S = 2.0
CRASH_REPORT_TIMEOUT_S = 3.0

P = ParamSpec("P")
R = TypeVar("R")


@dataclass
class SharedProcessEngine(AsyncFlowRunEngine[P, R]):
    """Prefect's engine without the threads that it starts per run.

    One thread holds a websocket to receive a Suspend from the UI, and its start and end block the event loop. The
    other one sends heartbeats. So a run of this worker ignores Suspend.

    A run that `continues` stays Running in Prefect when its process ends, and the next process carries it on.
    """

    run: FlowRun = field(kw_only=True)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    let_go: Callable[[], bool] = lambda: False
    continues: bool = False

    async def create_flow_run(self, client: PrefectClient) -> FlowRun:
        """Return the existing run.

        An engine that gets the run in its constructor updates it on the server with the flow's version and retries.
        This grid's flows have neither, so that request is saved.
        """
        return self.run

    async def set_state(self, state: State[Any], force: bool = False) -> State[Any]:
        """Report a state. The final state of a run is retried until Prefect answers.

        The engine takes every end from outside for a crash. If this worker was asked to stop the run, the state is
        Cancelled instead. A forced state is reported within CRASH_REPORT_TIMEOUT_S or not at all, so that an outage
        of Prefect does not delay the end of the process.
        """
        left_open = self.continues and state.is_crashed() and not self.scope.cancel_called
        self.short_circuit = self.short_circuit or left_open or self.let_go()
        if state.is_running() and is_running(self.run):  # it was created in that state
            return self.run.state or state
        if state.is_crashed() and self.scope.cancel_called:
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
        """As in Prefect, but without reading the run from the server a second time."""
        known = copy(client or self.client)
        known.read_flow_run = self._known_run  # type: ignore[method-assign]
        async with super().setup_run_context(known):
            yield

    async def _known_run(self, flow_run_id: UUID) -> FlowRun:
        """The run without its deployment and queue. Otherwise Prefect repeats both in each event of each task.

        The events of the run itself come from the server, and name both.
        """
        return self.run.model_copy(update={"deployment_id": None, "work_queue_id": None, "work_pool_name": None})

    @contextmanager
    def setup_flow_run_suspension_request(self) -> Generator[FlowRunSuspensionRequest, None, None]:
        yield self._get_flow_run_suspension_request()


def is_running(run: FlowRun) -> bool:
    """Whether its state is Running."""
    return run.state is not None and run.state.is_running()
