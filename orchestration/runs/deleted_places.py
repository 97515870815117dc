"""Scheduled runs whose deployment or work pool was deleted. Prefect never starts them, so the worker begins them."""

from __future__ import annotations

from contextlib import suppress

from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import FlowFilter, FlowFilterId
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import ObjectNotFound
from prefect.states import Pending

from orchestration.runs.filters import in_pool


async def begin_without_deployment(client: PrefectClient, run: FlowRun, work_pool: str) -> str | None:
    """Begin a scheduled run whose deployment is gone, if the pool has another deployment of its flow.

    Returns that one's entrypoint, None if the run does not begin. Prefect refuses Pending to such a run, so this is
    forced: a deployment that is gone has no limit.
    """
    if run.deployment_id is None:
        return None
    with suppress(ObjectNotFound):
        await client.read_deployment(run.deployment_id)
        return None
    same_flow = FlowFilter(id=FlowFilterId(any_=[run.flow_id]))
    others = await client.read_deployments(work_pool_filter=in_pool(work_pool), flow_filter=same_flow, limit=1)
    state = (await client.read_flow_run(run.id)).state
    if not others or state is None or not state.is_scheduled():  # a person may have cancelled it meanwhile
        return None
    await client.set_flow_run_state(run.id, Pending(), force=True)
    return others[0].entrypoint


def has_no_pool(run: FlowRun) -> bool:
    """Return whether the run is scheduled, and no poll returns it: its work pool was deleted."""
    return run.state is not None and run.state.is_scheduled() and run.work_queue_id is None
