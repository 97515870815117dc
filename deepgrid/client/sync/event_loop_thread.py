"""The event loop on which the sync classes run the async ones, in a daemon thread of its own.

All Grids of a process share one thread. It starts with the first call and ends with the interpreter. So a `Grid` works
in scripts, in notebooks, inside a running loop and in many threads at once.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import selectors
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import Future, wait
from typing import Any, Generic, TypeVar

from deepgrid.client.engine.connection import close_left_open
from deepgrid.errors import InputError

T = TypeVar("T")

READ_AHEAD = 64  # items of an iterator that are read before they are asked for
WIND_DOWN_S = 5.0  # longest time that the end of the interpreter waits for connections to close
NOTES_S = 1.0  # longest time that an interrupted call waits for what its coroutine says about the rest


class EventLoopThread:
    """Runs coroutines for other threads."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._starting = threading.Lock()
        self._selector: selectors.BaseSelector | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self.ending = False

    @property
    def usable(self) -> bool:
        """Whether calls are possible: not in a child after a fork, and not at the end of the interpreter."""
        return self._pid == os.getpid() and not self.ending

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return the result of the coroutine.

        Ctrl-C cancels the coroutine and reaches the caller at once. What the coroutine then says about work that
        continues becomes a note of the KeyboardInterrupt.

        Raises:
            InputError: This thread belongs to the parent process, the interpreter ends, or the loop itself calls.
        """
        try:
            loop = self._running_loop()
        except InputError:
            coroutine.close()
            raise
        outcome = Future[T]()
        started = asyncio.run_coroutine_threadsafe(self._complete(coroutine, outcome), loop)
        try:
            return outcome.result()
        except BaseException as error:
            if not outcome.done():  # the wait was interrupted
                started.cancel()
                for note in _last_notes(outcome):
                    error.add_note(note)
            raise
        finally:
            del outcome  # an error keeps this frame, and must not keep its own future

    async def _complete(self, coroutine: Coroutine[Any, Any, T], outcome: Future[T]) -> None:
        """Put the result or the error of the coroutine into `outcome`."""
        try:
            outcome.set_result(await coroutine)
        except BaseException as error:
            # Also SystemExit, which would end the loop. When the interpreter ends, only daemon threads still wait;
            # an error would make each print a traceback.
            if not (self.ending and isinstance(error, asyncio.CancelledError)):
                outcome.set_exception(error)
        finally:
            del outcome  # an error keeps this frame, and must not keep its own future

    def iterate(self, source: AsyncIterator[T]) -> Iterator[T]:
        """Yield the items of an async iterator. Some are read ahead. Closing this iterator closes the source."""
        ahead = _ReadAhead(source)
        try:
            while items := self.run(ahead.take()):
                yield from items
        except KeyboardInterrupt as error:
            for note in self.run(ahead.close()):
                error.add_note(note)
            raise
        finally:
            if self.usable and self._loop is not None:
                self._loop.call_soon_threadsafe(ahead.cancel)  # without a wait: a garbage collector may call this

    def close(self) -> None:
        """Cancel all tasks, close all connections, and end the thread. Calls that still wait do not return."""
        with self._starting:
            if not self.usable:
                return
            self.ending = True
        if self._loop is not None and self._thread is not None:
            asyncio.run_coroutine_threadsafe(self._wind_down(), self._loop)
            self._thread.join(2 * WIND_DOWN_S)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._pid != os.getpid():
            raise InputError(
                "This Grid was opened before a fork, and its connections belong to the parent process.",
                next_step="Open another one in the child.",
            )
        if self.ending:
            raise InputError("The interpreter is ending, and this Grid is closed.")
        if threading.current_thread() is self._thread:
            raise InputError("A callback of a Grid cannot call the Grid again.", next_step="Use AsyncGrid instead.")
        with self._starting:
            if self._loop is None:
                self._selector = selectors.DefaultSelector()
                self._loop = asyncio.SelectorEventLoop(self._selector)
                self._thread = threading.Thread(target=_serve, args=[self._loop], name="deepgrid", daemon=True)
                self._thread.start()
            return self._loop

    async def _wind_down(self) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_silent)
        try:
            async with asyncio.timeout(WIND_DOWN_S):
                await _cancel(asyncio.all_tasks() - {asyncio.current_task()})
                await close_left_open()
                await loop.shutdown_asyncgens()
        finally:
            loop.stop()

    def leave_to_parent(self) -> None:
        """Leave connections and watched files to the parent, which shares them with this child of a fork.

        When the child's copies are collected, they would end the connections and stop the watching of the parent.
        """
        if self._loop is None or self._selector is None:
            return
        self._loop.set_exception_handler(_silent)
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for key in list(self._selector.get_map().values()):
            os.dup2(nothing, key.fd, inheritable=False)
        os.close(nothing)


class _ReadAhead(Generic[T]):
    """Reads an async iterator in a task of its own, so that a caller gets many items with one change of threads."""

    def __init__(self, source: AsyncIterator[T]) -> None:
        self._source = source
        self._items: asyncio.Queue[T] = asyncio.Queue(READ_AHEAD)
        self._task: asyncio.Task[None] | None = None
        self._notes: list[str] = []

    async def take(self) -> list[T]:
        """Return the next items, at least one; none at the end. Raises the error of the source after its last item."""
        if self._task is None:
            self._task = asyncio.create_task(self._read())
            self._task.add_done_callback(_retrieve)
        getting = asyncio.ensure_future(self._items.get())
        try:
            await asyncio.wait([getting, self._task], return_when=asyncio.FIRST_COMPLETED)
            if not getting.done() and self._items.empty():
                await self._task
                return []
            items = [await getting]
        finally:
            getting.cancel()
        while not self._items.empty():
            items.append(self._items.get_nowait())
        return items

    async def close(self) -> list[str]:
        """End the reading. Returns notes about work that continues."""
        self.cancel()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=NOTES_S)
        return self._notes

    def cancel(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()

    async def _read(self) -> None:
        try:
            async for item in self._source:
                await self._items.put(item)
        except asyncio.CancelledError as error:
            self._notes = _notes_of(error)
            raise
        finally:
            close = getattr(self._source, "aclose", None)
            if close is not None:
                await close()


def _last_notes(outcome: Future[Any]) -> list[str]:
    """Return the notes on a coroutine's cancellation, which exist when it has ended."""
    wait([outcome], NOTES_S)
    return _notes_of(outcome.exception()) if outcome.done() else []


def _notes_of(error: BaseException | None) -> list[str]:
    return list(getattr(error, "__notes__", ()))


def _retrieve(task: asyncio.Task[None]) -> None:
    """Look at the error of a task; else asyncio logs it when no caller asks for more items."""
    if not task.cancelled():
        task.exception()


def event_loop_thread() -> EventLoopThread:
    """Return the thread of this process."""
    return _shared


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


async def _cancel(tasks: set[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _silent(_: asyncio.AbstractEventLoop, __: dict[str, Any]) -> None:
    return None


_shared = EventLoopThread()


def _renew() -> None:
    global _shared  # noqa: PLW0603 - one thread per process
    _shared.leave_to_parent()
    _shared = EventLoopThread()


def _close() -> None:
    _shared.close()


os.register_at_fork(after_in_child=_renew)
atexit.register(_close)
