"""How a carrier runs its steps: each as a Prefect task, or by a plain call."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class RunStep(Protocol):
    """Runs a step with these arguments. `name` says in words what the step does, for people to read."""

    async def __call__(
        self, name: str, step: Callable[P, Coroutine[Any, Any, R]], /, *args: P.args, **kwargs: P.kwargs
    ) -> R: ...


async def call_step(_name: str, step: Callable[P, Coroutine[Any, Any, R]], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Call the step, and nothing else."""
    return await step(*args, **kwargs)
