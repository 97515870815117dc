"""Retry policy of all tasks: transient errors with exponential back-off and jitter, all others never."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.tasks import Task, exponential_backoff

from deepgrid.errors import GridError
from orchestration.outages import is_outage

P = ParamSpec("P")
R = TypeVar("R")

RETRIES = 5
BACKOFF_S = 1
JITTER = 0.5


async def is_transient(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """Return whether a retry may help. Async, because the result of an async task's state must be awaited."""
    error = await state.aresult(raise_on_failure=False)
    return error.transient if isinstance(error, GridError) else is_outage(error)


def side_effect(name: str, retries: int = RETRIES) -> Callable[[Callable[P, R]], Task[P, R]]:
    """Make a function a task that retries transient errors, by default for about half a minute.

    Its runs have this name, to the letter: a provider chooses the cluster's name in it, so it is not a template. The
    task keeps the function's name and docstring. Its result is never cached or persisted: it reads the truth each time,
    and scripts hold secrets.
    """
    return task(
        task_run_name=lambda: name,
        retries=retries,
        retry_delay_seconds=exponential_backoff(backoff_factor=BACKOFF_S),
        retry_jitter_factor=JITTER,
        retry_condition_fn=is_transient,
        cache_policy=NO_CACHE,
        persist_result=False,
        log_prints=False,
    )
