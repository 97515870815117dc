"""Prefect's engine for flow runs that share their process and its event loop with hundreds of others."""

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

from runtime.outages import is_outage

STOPPED = "Carrying was stopped; the job itself goes on."
REPORT_AGAIN_S = 2.0
LAST_WORD_S = 3.0

P = ParamSpec("P")
R = TypeVar("R")


@dataclass
class SharedProcessEngine(AsyncFlowRunEngine[P, R]):
    """Prefect's engine without what it starts for each run of a process of its own.

    That is a thread with a websocket which looks for a Suspend from the UI, and whose start and
    end block the event loop; and a heartbeat thread. A suspended run of this worker goes on.
    """

    run: FlowRun = field(kw_only=True)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    let_go: Callable[[], bool] = lambda: False

    async def create_flow_run(self, client: PrefectClient) -> FlowRun:
        """The run, which is there already. Given to the engine from the start, it would be written to for each run:
        the flow's version and its retries, of which this grid's flows have none."""
        return self.run

    async def set_state(self, state: State[Any], force: bool = False) -> State[Any]:
        """Report a state; how a run ended is told once Prefect answers, however long that takes.

        A run that this worker was told to stop is cancelled; to the engine every end from outside is a crash. Such
        an end is told within seconds or not at all: whoever ends the process does not wait for Prefect.
        """
        self.short_circuit = self.short_circuit or self.let_go()
        if state.is_running() and is_running(self.run):  # it was created so
            return self.run.state or state
        if state.is_crashed() and self.scope.cancel_called:
            state = Cancelled(message=STOPPED)
        if force:
            with anyio.move_on_after(LAST_WORD_S):
                return await super().set_state(state, force)
            return state
        while True:
            try:
                return await super().set_state(state, force)
            except httpx.HTTPError as error:
                if not (state.is_final() and is_outage(error)):
                    raise
            await asyncio.sleep(REPORT_AGAIN_S)

    @asynccontextmanager
    async def setup_run_context(self, client: PrefectClient | None = None) -> AsyncIterator[None]:
        """As Prefect does it, without asking the server for the run that it was just asked for."""
        known = copy(client or self.client)
        known.read_flow_run = self._known_run  # type: ignore[method-assign]
        async with super().setup_run_context(known):
            yield

    async def _known_run(self, flow_run_id: UUID) -> FlowRun:
        return self.run

    @contextmanager
    def setup_flow_run_suspension_request(self) -> Generator[FlowRunSuspensionRequest, None, None]:
        yield self._get_flow_run_suspension_request()


def is_running(run: FlowRun) -> bool:
    """Whether it stands as Running."""
    return run.state is not None and run.state.is_running()
