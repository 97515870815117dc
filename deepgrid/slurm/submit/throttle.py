"""Collects requests into batches, and limits commands that run at once.

So the commands for one customer cannot delay those for others.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

PER_ACCOUNT = 3
RESERVED_CHANNELS = 3  # of the login, for polling and other queries

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
            except BaseException as raised:  # every caller must get it, even the cancellation of this task
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


class ConcurrencyLimits:
    """At most `per_account` commands at once per Unix account, and RESERVED_CHANNELS fewer than there are channels.

    A submission knows its account by name, a snapshot by number. Both mean the same account.
    """

    def __init__(self, channels: int, per_account: int = PER_ACCOUNT) -> None:
        self._all = asyncio.Semaphore(max(1, channels - RESERVED_CHANNELS))
        self._by_account: dict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(per_account))
        self._accounts: dict[str, str] = {}

    def learn(self, accounts: Mapping[str, str]) -> None:
        """Note the accounts of claims, by the claim's comment."""
        for comment, account in accounts.items():
            known = self._accounts.setdefault(comment, account)
            if known != account:
                self._by_account[account] = self._by_account[known]

    def forget(self, comment: str) -> None:
        """Forget the claim, which is over."""
        self._accounts.pop(comment, None)

    @asynccontextmanager
    async def slot(self, comment: str) -> AsyncIterator[None]:
        """Wait until a command on the claim with this comment may run. It runs while the context lasts."""
        account = self._accounts.get(comment)
        if account is None:
            async with self._all:
                yield
            return
        async with self._by_account[account], self._all:
            yield
