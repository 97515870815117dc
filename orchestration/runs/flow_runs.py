"""Starts runs of deployments, even through outages and pauses, and makes this process's worker poll for them."""

from __future__ import annotations

import asyncio
import logging
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

from deepgrid.errors import ConfigurationError, GridError
from orchestration.outages import is_outage, warn

MAX_PARALLEL = 8
END_POLL_S = 0.5
START_RETRY_S = 2.0
CLOCK_SLACK = timedelta(seconds=2)

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Paused(GridError):
    """A person has paused the deployment and must resume it. An immediate retry does not help."""

    def __init__(self, deployment: str) -> None:
        super().__init__(
            f"The deployment {deployment} is paused;",
            next_step="resume it in Prefect's UI or with `prefect deployment schedule resume`.",
        )


class Worker(Protocol):
    """The in-process worker of a pool: what those who create runs need of it. It imports this package."""

    def look_now(self) -> None: ...

    def carries(self, run_id: UUID) -> bool: ...

    def may_start(self) -> bool: ...

    def has_taken_over(self) -> bool: ...

    def begin(self, run: FlowRun) -> None: ...

    def beginning(self) -> AbstractAsyncContextManager[Callable[[FlowRun], None]]: ...


_workers: dict[str, Worker] = {}


@contextmanager
def calling_to_runs(work_pool: str, worker: Worker) -> Iterator[None]:
    """Make `worker` poll for new runs of `work_pool` while the context lasts."""
    _workers[work_pool] = worker
    try:
        yield
    finally:
        del _workers[work_pool]


def worker_of(work_pool: str) -> Worker | None:
    """Return this process's worker of the pool."""
    return _workers.get(work_pool)


def call_worker(work_pool: str) -> None:
    """Make this process's worker poll at once. A worker of another process finds the runs at its next poll."""
    if work_pool in _workers:
        _workers[work_pool].look_now()


async def run_ended(run: FlowRun, poll_s: float = END_POLL_S) -> bool:
    """Wait for the run's end, through outages of Prefect's API. Returns whether it completed; a deleted run did not.

    Raises httpx.HTTPStatusError when the API refuses the request.
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
            await asyncio.sleep(poll_s)


async def start_run(deployment: str, parameters: dict[str, Any]) -> FlowRun:
    """Create a run of the deployment (`flow/name`). Raises Paused, and ConfigurationError if it has no work pool."""
    async with get_client() as client:
        found = await client.read_deployment_by_name(deployment)
        if is_paused(found):
            raise Paused(deployment)
        if found.work_pool_name is None:  # no worker would ever start the run
            raise ConfigurationError(f"The work pool of {deployment} was deleted.", next_step="Deploy it again.")
        run = await client.create_flow_run_from_deployment(found.id, parameters=parameters)
        await _not_later(client, run.id, run.state)
    call_worker(found.work_pool_name or "")
    return run


async def start_eventually(deployment: str, parameters: dict[str, Any], retry_s: float = START_RETRY_S) -> FlowRun:
    """Start a run of the deployment (`flow/name`) as soon as that is possible.

    It retries while Prefect's API is down or the deployment is paused, and logs each new reason once. The work waits
    on chain meanwhile.
    """
    logged = ""
    while True:
        try:
            return await start_run(deployment, parameters)
        except Exception as error:  # Prefect's client raises many types while its server is down
            if repr(error) != logged:
                warn(logger, f"cannot start {deployment} yet, trying again", error)
            logged = repr(error)
            await asyncio.sleep(retry_s)


async def run_to_completion(deployment: str, parameters: dict[str, Any]) -> bool:
    """Start a run as soon as that is possible and wait for its end. Returns whether it completed; logs why not."""
    try:
        run = await start_eventually(deployment, parameters)
        if await run_ended(run):
            return True
        logger.warning("run %s of %s did not complete, trying again", run.name, deployment)
    except Exception as error:  # Prefect's client raises many types
        warn(logger, f"cannot follow the run of {deployment} to its end, trying again", error)
    return False


async def schedule(client: PrefectClient, run_id: UUID, state: State[None]) -> None:
    """Force a run into this state. A scheduled state is due at once."""
    done = await client.set_flow_run_state(run_id, state, force=True)
    await _not_later(client, run_id, done.state)


async def put(client: PrefectClient, run: FlowRun, state: State[None]) -> None:
    """Force a run into this state, and log that."""
    before = run.state.name if run.state else "without a state"
    logger.info("run %s was %s, is now %s: %s", run.name, before, state.name, state.message)
    await schedule(client, run.id, state)


async def _not_later(client: PrefectClient, run_id: UUID, state: State[Any] | None) -> None:
    """Make a scheduled run due by the server's clock. With this machine's clock ahead, the server holds it back."""
    planned = None if state is None or not state.is_scheduled() else state.state_details.scheduled_time
    if state is not None and planned is not None and planned > state.timestamp + CLOCK_SLACK:
        again: State[None] = Scheduled(scheduled_time=state.timestamp, name=state.name, message=state.message)
        await client.set_flow_run_state(run_id, again, force=True)


async def some_at_once(work: Iterable[Awaitable[T]], at_once: int = MAX_PARALLEL) -> list[T]:
    """Await all of them, at most `at_once` in parallel: more parallel requests make Prefect's server no faster.

    Raises the first error once all are done.
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
    """Return whether the deployment is paused.

    Its schedules are the switch. A deployment without a schedule (`run_job`) cannot be paused: claimed jobs are
    carried to their end.
    """
    active = [schedule.active for schedule in deployment.schedules]
    return bool(active) and (deployment.paused or not any(active))
