"""Does for many what each asks for alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Batcher(Generic[T]):
    """Gathers what is asked for within `gather_s` seconds, and while the last lot is done, for one call of `do`."""

    def __init__(self, do: Callable[[Sequence[T]], Awaitable[None]], gather_s: float, at_most: int) -> None:
        self._do_all = do
        self._gather_s = gather_s
        self._at_most = at_most
        self._waiting: list[tuple[T, asyncio.Future[None]]] = []
        self._working: asyncio.Task[None] | None = None

    async def do(self, one: T) -> None:
        """Return once `one` is done. Raises what doing its lot raised."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((one, done))
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._work())
        await done

    async def _work(self) -> None:
        while self._waiting:
            await asyncio.sleep(self._gather_s)
            lot, self._waiting = self._waiting[: self._at_most], self._waiting[self._at_most :]
            error: BaseException | None = None
            try:
                await self._do_all([one for one, _ in lot])
            except BaseException as raised:  # whoever waits must hear of it, also of the end of this task
                error = raised
            for _, done in lot:
                if done.done():  # who asked went away
                    continue
                if error is None:
                    done.set_result(None)
                elif isinstance(error, Exception):
                    done.set_exception(error)
                else:
                    done.cancel()
            if error is not None and not isinstance(error, Exception):
                raise error
