"""Creates runs of a deployment by the dozen and, where nothing in Prefect holds them back, begins them at once.

What a work pool hands out costs Prefect's server four requests a run; such a run costs it one, and a share of two.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any
from uuid import UUID, uuid4, uuid5

from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.actions import DeploymentFlowRunCreate, StateCreate
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import FlowRun, StateDetails, StateType
from prefect.client.schemas.responses import DeploymentResponse

from runtime.runs import call_worker, some_at_once, worker_of

TERMS_STAND_S = 10.0
AT_ONCE = 10  # the server writes so many in one transaction, the first begins when the last is written
LOTS_AT_ONCE = 2  # more are written no sooner, and the first ones later
THIS_PROCESS = uuid4()
_BULK: Any = "/deployments/{id}/create_flow_run/bulk"  # the client knows the endpoint not yet

_terms: dict[tuple[str, str], tuple[float, DeploymentResponse, bool]] = {}  # by server and name, with when asked


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to be; there is at most one of a key."""

    key: str
    name: str
    parameters: dict[str, Any]


async def find_or_begin_runs(deployment: str, wanted: Sequence[NewRun]) -> list[FlowRun]:
    """The runs of the deployment (`flow/name`, which nobody pauses) with these keys, created unless they are there.

    New ones begin in this process when it has the pool's worker and nothing limits how many run; else they are
    scheduled. Those that were there are left as they are. Raises whatever Prefect's client raises.
    """
    async with get_client() as client:
        found, is_free = await _read_terms(client, deployment)
        pool = found.work_pool_name or ""
        worker = worker_of(pool)
        parts = [wanted[at : at + AT_ONCE] for at in range(0, len(wanted), AT_ONCE)]
        if worker is None or not (is_free and worker.may_begin()):
            created = await some_at_once((_create(client, found, part) for part in parts), LOTS_AT_ONCE)
        else:
            async with worker.beginning() as begin:
                created = await some_at_once((_begin(client, begin, found, part) for part in parts), LOTS_AT_ONCE)
        runs = list(chain.from_iterable(created))
        if any(run.state is not None and run.state.is_scheduled() for run in runs):
            call_worker(pool)
        return runs


async def _begin(
    client: PrefectClient, begin: Callable[[FlowRun], None], deployment: DeploymentResponse, wanted: Sequence[NewRun]
) -> list[FlowRun]:
    runs = await _create(client, deployment, wanted, as_running=True)
    for run in filter(_is_ours, runs):
        begin(run)
    return runs


async def _create(
    client: PrefectClient, deployment: DeploymentResponse, wanted: Sequence[NewRun], *, as_running: bool = False
) -> list[FlowRun]:
    new = [
        DeploymentFlowRunCreate(
            name=one.name,
            parameters=one.parameters,
            idempotency_key=one.key,
            state=_running(one.key) if as_running else None,
        ).model_dump(mode="json", exclude_unset=True)
        for one in wanted
    ]
    path = {"id": deployment.id}
    answer = await client.request("POST", _BULK, path_params=path, json=new)
    results = answer.json()["results"]
    if refused := [one["error"] for one in results if one["status"] != "CREATED"]:
        raise ValueError(refused[0])
    wanted_ids = FlowRunFilterId(any_=[UUID(one["flow_run_id"]) for one in results])
    return await client.read_flow_runs(flow_run_filter=FlowRunFilter(id=wanted_ids), limit=len(wanted))


def _running(key: str) -> StateCreate:
    """The first state of a run that this process creates to begin it; asked again, the server has it already."""
    return StateCreate(type=StateType.RUNNING, state_details=StateDetails(transition_id=_transition(key)))


def _transition(key: str) -> UUID:
    return uuid5(THIS_PROCESS, key)


def _is_ours(run: FlowRun) -> bool:
    """Whether the run stands as this process created it. Whatever was done to it since is not overridden."""
    if run.state is None or run.idempotency_key is None or not run.state.is_running():
        return False
    return run.state.state_details.transition_id == _transition(run.idempotency_key)


async def _read_terms(client: PrefectClient, deployment: str) -> tuple[DeploymentResponse, bool]:
    """The deployment, and whether neither it nor its work pool nor its queue holds runs back."""
    place = str(client.api_url), deployment
    asked_at, found, is_free = _terms.get(place, (0.0, None, False))
    if found is None or time.monotonic() - asked_at > TERMS_STAND_S:
        found = await client.read_deployment_by_name(deployment)
        is_free = found.global_concurrency_limit is None and await _hands_out(client, found)
        _terms[place] = time.monotonic(), found, is_free
    return found, is_free


async def _hands_out(client: PrefectClient, deployment: DeploymentResponse) -> bool:
    """Whether the deployment's work pool and queue hand out all that there is."""
    if deployment.work_pool_name is None or deployment.work_queue_name is None:
        return False
    pool = await client.read_work_pool(deployment.work_pool_name)
    queue = await client.read_work_queue_by_name(deployment.work_queue_name, deployment.work_pool_name)
    return not any(one.is_paused or one.concurrency_limit is not None for one in (pool, queue))
