"""Starts runs of deployments, and hands them to this process's worker at once where it has one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun

Taker = Callable[[FlowRun], None]
_takers: dict[str, Taker] = {}


def offer_runs_to(work_pool: str, taker: Taker | None) -> None:
    """From now on hand new runs of `work_pool` to `taker` (None: to nobody), besides the pool."""
    if taker is None:
        _takers.pop(work_pool, None)
    else:
        _takers[work_pool] = taker


async def start_run(
    deployment: str, parameters: dict[str, Any], *, idempotency_key: str | None = None
) -> FlowRun:
    """Create a run of the deployment (`flow/name`), or find the one with this idempotency key.

    The work pool would bring it to a worker within its polling interval; a worker of this
    process gets it now. Prefect lets only one of the two start it.
    """
    async with get_client() as client:
        found = await client.read_deployment_by_name(deployment)
        run = await client.create_flow_run_from_deployment(
            found.id, parameters=parameters, idempotency_key=idempotency_key
        )
    taker = _takers.get(found.work_pool_name or "")
    if taker is not None and run.state is not None and run.state.is_scheduled():
        taker(run)
    return run
