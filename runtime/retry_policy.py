"""How every task retries: transient errors with back-off and jitter, all others not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.tasks import Task, exponential_backoff

from deepgrid.errors import GridError
from runtime.outages import is_outage

P = ParamSpec("P")
R = TypeVar("R")

RETRIES = 5
BACKOFF_S = 1
JITTER = 0.5


async def is_transient(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """Whether trying again may help. Async, because Prefect hands an async task's state over unread."""
    error = await state.aresult(raise_on_failure=False)
    return error.transient if isinstance(error, GridError) else is_outage(error)


def side_effect(name: str, retries: int = RETRIES) -> Callable[[Callable[P, R]], Task[P, R]]:
    """A task that retries transient errors for about half a minute, or as often as said.

    Nothing of it is cached or persisted: it looks at the truth each time, and scripts hold secrets.
    """
    return task(
        task_run_name=name,
        retries=retries,
        retry_delay_seconds=exponential_backoff(backoff_factor=BACKOFF_S),
        retry_jitter_factor=JITTER,
        retry_condition_fn=is_transient,
        cache_policy=NO_CACHE,
        persist_result=False,
        log_prints=False,
    )


def waiting(name: str) -> Callable[[Callable[P, R]], Task[P, R]]:
    """A task that waits for the world, however long; an outage meanwhile is waited out too."""
    return task(
        task_run_name=name,
        retries=1_000_000,
        retry_delay_seconds=15,
        retry_jitter_factor=JITTER,
        retry_condition_fn=is_transient,
        cache_policy=NO_CACHE,
        persist_result=False,
    )
