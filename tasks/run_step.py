"""Runs the steps of the roles as Prefect tasks. A flow names the task run of each step."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from orchestration.prefect_internals import as_task
from orchestration.retry_policy import side_effect

P = ParamSpec("P")
R = TypeVar("R")

QUERY_RETRIES = 2  # a cluster that does not answer is queried again by the next run


async def run_step(name: str, step: Callable[P, Coroutine[Any, Any, R]], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a step as a task that retries transient errors for about half a minute, and fails at once on all others.

    The task has the step's function name and docstring.
    """
    return await as_task(side_effect(name)(step), *args, **kwargs)


async def run_query(name: str, step: Callable[P, Coroutine[Any, Any, R]], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a step as `run_step` does, with fewer retries: the next run of the flow queries the cluster again."""
    return await as_task(side_effect(name, QUERY_RETRIES)(step), *args, **kwargs)
