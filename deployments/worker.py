"""The in-process worker: a Prefect worker that runs flow runs as coroutines of its own process.

A job that waits in Slurm costs this worker about a megabyte, not a Python process, and a run
starts in milliseconds. Everything else is Prefect's: the work pool, retries from the UI,
cancelling, the worker's heartbeat.

Run its loop outside the main thread (see `deployments.service`): Prefect's engine takes over
SIGTERM for each flow run that it executes in a main thread.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Any

import anyio.abc
from prefect.client.schemas.objects import FlowRun
from prefect.context import AsyncClientContext
from prefect.exceptions import Abort, Pause
from prefect.flow_engine import run_flow
from prefect.flows import Flow, load_flow_from_entrypoint
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings
from prefect.states import Pending
from prefect.utilities.engine import propose_state
from prefect.workers.base import BaseJobConfiguration, BaseVariables, BaseWorker, BaseWorkerResult

WORKER_TYPE = "deepgrid"


class InProcessResult(BaseWorkerResult):
    """Outcome of one run; its state was reported by the engine itself."""


class InProcessWorker(BaseWorker[BaseJobConfiguration, BaseVariables, InProcessResult]):
    """Runs async flows of deployments whose entrypoint is an importable module path."""

    type = WORKER_TYPE
    job_configuration = BaseJobConfiguration
    _entrypoints: dict = {}
    _description = "Runs many flow runs as coroutines of one process. Used by the supervisor and the operator."

    async def setup(self) -> None:
        """Prepare to run, with one API client shared by all runs instead of one a run."""
        await self._exit_stack.enter_async_context(AsyncClientContext())
        await super().setup()

    async def run(
        self,
        flow_run: FlowRun,
        configuration: BaseJobConfiguration | None = None,
        task_status: anyio.abc.TaskStatus[int] | None = None,
    ) -> InProcessResult:
        """Run the flow to its end in this event loop; the engine reports its states."""
        flow = await self._flow_of(flow_run)
        with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
            with suppress(Abort, Pause):
                await run_flow(flow, flow_run=flow_run, return_type="state")
        return InProcessResult(identifier=str(flow_run.id), status_code=0)

    async def _submit_run(self, flow_run: FlowRun) -> None:
        try:
            if await self._propose_pending_state(flow_run):
                await self.run(flow_run)
        finally:
            self._release_limit_slot(flow_run.id)
            self._submitting_flow_run_ids.discard(flow_run.id)

    async def _flow_of(self, flow_run: FlowRun) -> Flow[..., Any]:
        deployment_id = flow_run.deployment_id
        assert deployment_id is not None
        if deployment_id not in self._entrypoints:
            self._entrypoints[deployment_id] = (await self.client.read_deployment(deployment_id)).entrypoint
        return _flow(self._entrypoints[deployment_id])


@cache
def _flow(entrypoint: str) -> Flow[..., Any]:
    return load_flow_from_entrypoint(entrypoint, use_placeholder_flow=False)
