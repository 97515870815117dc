"""Collects single requests into batches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Batcher(Generic[T]):
    """Collects requests for `delay_s` seconds, and while a batch runs, and passes them to one call of `do`.

    The call returns the errors of single requests, or None. An error that it raises is the error of all of them.
    """

    def __init__(
        self, do: Callable[[Sequence[T]], Awaitable[Mapping[T, Exception] | None]], delay_s: float, batch_size: int
    ) -> None:
        self._do_batch = do
        self._delay_s = delay_s
        self._batch_size = batch_size
        self._waiting: list[tuple[T, asyncio.Future[None]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def do(self, request: T) -> None:
        """Return when the batch with `request` is done. Raises the error of this request or of its batch."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, done))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        await done

    async def _work(self) -> None:
        while self._waiting:
            await asyncio.sleep(self._delay_s)
            batch, self._waiting = self._waiting[: self._batch_size], self._waiting[self._batch_size :]
            errors: Mapping[T, BaseException] = {}
            fatal: BaseException | None = None
            try:
                errors = await self._do_batch([request for request, _ in batch]) or {}
            except BaseException as raised:  # every caller must get it, also the cancellation of this task
                errors = dict.fromkeys((request for request, _ in batch), raised)
                fatal = None if isinstance(raised, Exception) else raised
            for request, done in batch:
                if not done.done():  # or its caller was cancelled
                    _finish(done, errors.get(request))
            if fatal is not None:
                raise fatal


def _finish(done: asyncio.Future[None], error: BaseException | None) -> None:
    if error is None:
        done.set_result(None)
    elif isinstance(error, Exception):
        done.set_exception(error)
    else:
        done.cancel()
