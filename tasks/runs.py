"""Starts runs of deployments, and hands them to this process's worker at once where it has one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun

Taker = Callable[[FlowRun], None]
_takers: dict[str, Taker] = {}


@contextmanager
def offering_runs_to(work_pool: str, taker: Taker) -> Iterator[None]:
    """While it lasts, hand new runs of `work_pool` to `taker` as well as to the pool."""
    _takers[work_pool] = taker
    try:
        yield
    finally:
        del _takers[work_pool]


def hand_over(run: FlowRun, work_pool: str) -> None:
    """Offer a scheduled run to this process's worker; the pool keeps it in any case.

    Prefect lets only one worker start it.
    """
    taker = _takers.get(work_pool)
    if taker is not None and run.state is not None and run.state.is_scheduled():
        taker(run)


async def run_ended(run: FlowRun) -> bool:
    """Wait for the run's end, through outages of Prefect's API; whether it completed."""
    async with get_client() as client:
        while True:
            with suppress(httpx.HTTPError):
                state = (await client.read_flow_run(run.id)).state
                if state is not None and state.is_final():
                    return state.is_completed()
            await asyncio.sleep(0.5)


async def start_run(deployment: str, parameters: dict[str, Any], *, idempotency_key: str | None = None) -> FlowRun:
    """Create a run of the deployment (`flow/name`), or find the one with this idempotency key."""
    async with get_client() as client:
        found = await client.read_deployment_by_name(deployment)
        run = await client.create_flow_run_from_deployment(
            found.id, parameters=parameters, idempotency_key=idempotency_key
        )
    hand_over(run, found.work_pool_name or "")
    return run
