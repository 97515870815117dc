"""Base of the sync classes: each object of them stands for an async object, and runs its methods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, ClassVar, Generic, Self, TypeVar
from weakref import WeakValueDictionary

from deepgrid.client.blocking.background import EventLoopThread, event_loop_thread
from deepgrid.errors import GridError

A = TypeVar("A")
T = TypeVar("T")


class Twin(Generic[A]):
    """A sync object. There is one for each async object, as long as it is used: `job.wait() is job`."""

    _kinds: ClassVar[dict[type, type[Twin[Any]]]] = {}
    _all: ClassVar[WeakValueDictionary[int, Twin[Any]]] = WeakValueDictionary()  # by id of the async object

    _async: A
    _thread: EventLoopThread

    def __init_subclass__(cls, of: type) -> None:
        cls._kinds[of] = cls

    def __init__(self) -> None:
        raise TypeError(f"{type(self).__name__} objects are made by a Grid.")

    @classmethod
    def _of(cls, original: A) -> Self:
        twin = cls._all.get(id(original))
        if not isinstance(twin, cls):
            twin = cls.__new__(cls)
            twin._stand_for(original)
        return twin

    def _stand_for(self, original: A) -> None:
        self._async = original
        self._thread = event_loop_thread()
        self._all[id(original)] = self

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        try:
            return self._thread.run(coroutine)
        except GridError as error:
            _turn(error)
            raise

    def _close(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine that closes. After a fork and at the end of the interpreter there is nothing to close."""
        if self._thread.usable:
            self._run(coroutine)
        else:
            coroutine.close()

    def _iterate(self, source: AsyncIterator[T]) -> Iterator[T]:
        try:
            yield from self._thread.iterate(source)
        except GridError as error:
            _turn(error)
            raise

    def __repr__(self) -> str:
        return f"{type(self).__name__}{repr(self._async).removeprefix(type(self._async).__name__)}"


def _turn(error: Any) -> None:
    """Give an error the sync object in place of the async one that it is about."""
    about = getattr(error, "job", None)
    if (kind := Twin._kinds.get(type(about))) is not None:
        error.job = kind._of(about)
