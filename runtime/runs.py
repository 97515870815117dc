"""Starts runs of deployments, and calls this process's worker to them at once where it has one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from datetime import timedelta
from typing import Any, Protocol, TypeVar, cast
from uuid import UUID

import httpx
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.objects import FlowRun, State
from prefect.client.schemas.responses import DeploymentResponse
from prefect.exceptions import ObjectNotFound
from prefect.states import Scheduled

from deepgrid.errors import GridError
from runtime.outages import is_outage

AT_ONCE = 8
ENDED_S = 0.5  # between two looks whether a run has ended
CLOCK_SLACK = timedelta(seconds=2)

T = TypeVar("T")


class Paused(GridError):
    """A deployment was paused by somebody, who is to resume it; trying again at once does not help."""

    def __init__(self, deployment: str) -> None:
        super().__init__(
            f"The deployment {deployment} is paused;",
            next_step="resume it in Prefect's UI or with `prefect deployment schedule resume`.",
        )


class Worker(Protocol):
    """The worker of this process's work pool."""

    def look_now(self) -> None:
        """Ask the pool for scheduled runs at once instead of at the next poll."""

    def carries(self, run_id: UUID) -> bool:
        """Whether it has the run in hand, or is about to start it."""

    def may_begin(self) -> bool:
        """Whether it takes runs that nobody scheduled."""

    def beginning(self) -> AbstractAsyncContextManager[Callable[[FlowRun], None]]:
        """To create runs as Running in: nobody tidies them away before they are given to what it yields."""


_workers: dict[str, Worker] = {}


@contextmanager
def calling_to_runs(work_pool: str, worker: Worker) -> Iterator[None]:
    """While it lasts, call `worker` to new runs of `work_pool`."""
    _workers[work_pool] = worker
    try:
        yield
    finally:
        del _workers[work_pool]


def worker_of(work_pool: str) -> Worker | None:
    """This process's worker of the pool."""
    return _workers.get(work_pool)


def call_worker(work_pool: str) -> None:
    """Let this process's worker look into the pool at once; elsewhere its poll finds what is scheduled."""
    if work_pool in _workers:
        _workers[work_pool].look_now()


def is_carried(run: FlowRun, work_pool: str) -> bool:
    """Whether this process's worker has the run in hand."""
    return work_pool in _workers and _workers[work_pool].carries(run.id)


async def run_ended(run: FlowRun) -> bool:
    """Wait for the run's end, through outages of Prefect's API; whether it completed. One that was deleted did not.

    Raises httpx.HTTPStatusError when the API refuses to tell.
    """
    async with get_client() as client:
        while True:
            try:
                state = (await client.read_flow_run(run.id)).state
            except ObjectNotFound:
                return False
            except httpx.HTTPError as error:
                if not is_outage(error):
                    raise
                state = None
            if state is not None and state.is_final():
                return state.is_completed()
            await asyncio.sleep(ENDED_S)


async def start_run(deployment: str, parameters: dict[str, Any]) -> FlowRun:
    """Create a run of the deployment (`flow/name`). Raises Paused."""
    async with get_client() as client:
        found = await client.read_deployment_by_name(deployment)
        if is_paused(found):
            raise Paused(deployment)
        return await _create(client, found, parameters=parameters)


async def _create(client: PrefectClient, deployment: DeploymentResponse, **options: Any) -> FlowRun:
    run = await client.create_flow_run_from_deployment(deployment.id, **options)
    await _not_later(client, run.id, run.state)
    call_worker(deployment.work_pool_name or "")
    return run


async def schedule(client: PrefectClient, run_id: UUID, state: State[None]) -> None:
    """Put a run into this state, whatever its own is; one that is to come comes at once."""
    done = await client.set_flow_run_state(run_id, state, force=True)
    await _not_later(client, run_id, done.state)


async def _not_later(client: PrefectClient, run_id: UUID, state: State[Any] | None) -> None:
    """Prefect's server holds back what is scheduled for later by its clock. When ours is ahead, that is all of ours."""
    planned = None if state is None or not state.is_scheduled() else state.state_details.scheduled_time
    if state is not None and planned is not None and planned > state.timestamp + CLOCK_SLACK:
        again: State[None] = Scheduled(scheduled_time=state.timestamp, name=state.name, message=state.message)
        await client.set_flow_run_state(run_id, again, force=True)


async def some_at_once(work: Iterable[Awaitable[T]], at_once: int = AT_ONCE) -> list[T]:
    """Await all of it, a few at a time: Prefect's server answers no faster when it is asked everything at once.

    Raises the first error of any once all are done.
    """
    slots = asyncio.Semaphore(at_once)

    async def one(part: Awaitable[T]) -> T:
        async with slots:
            return await part

    outcomes = await asyncio.gather(*map(one, work), return_exceptions=True)
    if failed := [outcome for outcome in outcomes if isinstance(outcome, BaseException)]:
        raise failed[0]
    return cast(list[T], outcomes)


def is_paused(deployment: DeploymentResponse) -> bool:
    """Whether somebody switched the deployment off.

    The switch is that of its schedules. A deployment without one (`run_job`) cannot be switched
    off: what was claimed is carried to its end.
    """
    active = [schedule.active for schedule in deployment.schedules]
    return bool(active) and (deployment.paused or not any(active))
