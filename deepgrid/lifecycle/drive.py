"""The loop around `decide`: observe, decide, do one action, until nothing is left to do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from deepgrid.lifecycle.actions import Action, Done
from deepgrid.lifecycle.decide import Observation, decide

Observe = Callable[[], Awaitable[Observation]]
Act = Callable[[Action], Awaitable[None]]


async def drive(observe: Observe, act: Act) -> Done:
    """Drive one claim to its end. The caller retries errors of `observe` and `act`."""
    while True:
        action = decide(await observe())
        if isinstance(action, Done):
            return action
        await act(action)
