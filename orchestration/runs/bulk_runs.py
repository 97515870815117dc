"""Creates runs of a deployment in bulk, and begins them at once if nothing in Prefect limits them.

A run from a work pool costs Prefect's server four requests per run. A run that begins here costs one, and a share of
two more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from itertools import chain
from typing import Any
from uuid import UUID, uuid4, uuid5

from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.actions import DeploymentFlowRunCreate, StateCreate
from prefect.client.schemas.objects import FlowRun, StateDetails, StateType
from prefect.client.schemas.responses import DeploymentResponse

from orchestration.prefect_internals import create_runs
from orchestration.runs.filters import runs_with
from orchestration.runs.flow_runs import call_worker, some_at_once, worker_of

DEPLOYMENT_CACHE_S = 10.0
BATCH_SIZE = 10  # the server writes a batch in one transaction; its first run begins when the last is written
PARALLEL_BATCHES = 2  # more in parallel finish no sooner, and delay the first runs
THIS_PROCESS = uuid4()

# By server and name: when it was read, the deployment, and whether it has no limits.
_deployments: dict[tuple[str, str], tuple[float, DeploymentResponse, bool]] = {}


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to create. `key` is its idempotency key: there is at most one run per key."""

    key: str
    name: str
    parameters: dict[str, Any]


async def find_or_begin_runs(
    deployment: str, wanted: Sequence[NewRun], *, cache_s: float = DEPLOYMENT_CACHE_S
) -> list[FlowRun]:
    """Find or create the runs of the deployment (`flow/name`) with these keys. The deployment must not be paused.

    New runs begin in this process if it has the pool's worker and no limit applies. Otherwise they are scheduled.
    Existing runs stay as they are. The deployment and its limits are cached for `cache_s`.
    Raises any error of Prefect's client.
    """
    async with get_client() as client:
        found, is_free = await _read_deployment(client, deployment, cache_s)
        pool = found.work_pool_name or ""
        worker = worker_of(pool)
        parts = [wanted[at : at + BATCH_SIZE] for at in range(0, len(wanted), BATCH_SIZE)]
        beginning: AbstractAsyncContextManager[Callable[[FlowRun], None] | None] = nullcontext()
        if worker is not None and is_free and worker.may_start():
            beginning = worker.beginning()
        async with beginning as begin:
            created = await some_at_once((_create(client, found, part, begin) for part in parts), PARALLEL_BATCHES)
        runs = list(chain.from_iterable(created))
        if any(run.state is not None and run.state.is_scheduled() for run in runs):
            call_worker(pool)
        return runs


async def _create(
    client: PrefectClient,
    deployment: DeploymentResponse,
    wanted: Sequence[NewRun],
    begin: Callable[[FlowRun], None] | None,
) -> list[FlowRun]:
    """Find or create these runs. With `begin`, new ones are created in state Running and given to it."""
    new = [
        DeploymentFlowRunCreate(
            name=one.name,
            parameters=one.parameters,
            idempotency_key=one.key,
            state=_running(one.key) if begin else None,
        )
        for one in wanted
    ]
    ids = await create_runs(client, deployment.id, new)
    runs = await client.read_flow_runs(flow_run_filter=runs_with(ids=ids), limit=len(wanted))
    if begin is not None:
        for run in filter(_is_ours, runs):
            begin(run)
    return runs


def _running(key: str) -> StateCreate:
    """Return the first state of a run that this process creates and begins.

    The transition id makes a retry safe.
    """
    return StateCreate(type=StateType.RUNNING, state_details=StateDetails(transition_id=_transition(key)))


def _transition(key: str) -> UUID:
    return uuid5(THIS_PROCESS, key)


def _is_ours(run: FlowRun) -> bool:
    """Return whether the run is still in the state in which this process created it.

    Later changes are not overridden.
    """
    if run.state is None or run.idempotency_key is None or not run.state.is_running():
        return False
    return run.state.state_details.transition_id == _transition(run.idempotency_key)


async def _read_deployment(client: PrefectClient, deployment: str, cache_s: float) -> tuple[DeploymentResponse, bool]:
    """Return the deployment, and whether it, its work pool and its queue have no limit. Cached for `cache_s`."""
    place = str(client.api_url), deployment
    read_at, found, is_free = _deployments.get(place, (0.0, None, False))
    if found is None or time.monotonic() - read_at > cache_s:
        found = await client.read_deployment_by_name(deployment)
        is_free = found.global_concurrency_limit is None and await _has_no_limit(client, found)
        _deployments[place] = time.monotonic(), found, is_free
    return found, is_free


async def _has_no_limit(client: PrefectClient, deployment: DeploymentResponse) -> bool:
    """Return whether the deployment's work pool and queue are neither paused nor limited."""
    if deployment.work_pool_name is None or deployment.work_queue_name is None:
        return False
    pool = await client.read_work_pool(deployment.work_pool_name)
    queue = await client.read_work_queue_by_name(deployment.work_queue_name, deployment.work_pool_name)
    return not any(one.is_paused or one.concurrency_limit is not None for one in (pool, queue))
