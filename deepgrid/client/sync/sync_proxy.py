"""Base of the sync classes: their objects run the methods of an async object. The members of a sync class are made from
the async class when Python defines it. A method has the arguments and the docstring of the async one. Its result has
sync objects in place of async ones.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ClassVar, Self
from weakref import WeakValueDictionary

from deepgrid.client.sync.event_loop_thread import EventLoopThread, event_loop_thread
from deepgrid.errors import GridError

# Special methods that a sync class takes over, and their names there.
SPECIAL = {
    "__init__": "__init__",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__iter__": "__iter__",
    "__aiter__": "__iter__",
    "__len__": "__len__",
    "__index__": "__index__",
    "_repr_html_": "_repr_html_",
    "_html": "_repr_html_",  # these three wait for the grid
    "_length": "__len__",
    "_item": "__getitem__",
}

_ASYNC_WORDS = (
    (re.compile(r"\b([Aa])n(\s+`?)(?=Async(Grid|JobSet|Jobs|Job|PortForward|Wallet)\b)"), r"\1\2"),
    (re.compile(r"\bAsync(Grid|JobSet|Jobs|Job|PortForward|Wallet|Iterator)\b"), r"\1"),
    (re.compile(r"\basync (with|for|def)\b"), r"\1"),
    (re.compile(r"\bawait "), ""),
)


def without_async(text: str) -> str:
    """Return a docstring or an annotation with the names and the syntax of the sync classes."""
    for pattern, sync in _ASYNC_WORDS:
        text = pattern.sub(sync, text)
    return text


def shared_members(async_class: type) -> dict[str, Any]:
    """Return the members of an async class that its sync class has too, by their names in the sync class.

    A constructor without a docstring is not for users: a Grid makes these objects.
    """
    return {
        SPECIAL.get(name, name): member
        for kind in reversed(async_class.__mro__[:-1])
        for name, member in vars(kind).items()
        if (name in SPECIAL or not name.startswith("_")) and (name != "__init__" or member.__doc__)
    }


class SyncProxy:
    """A sync object. There is one per async object, as long as it is used: `job.wait() is job`."""

    _classes: ClassVar[dict[type, type[SyncProxy]]] = {}  # by async class
    _objects: ClassVar[WeakValueDictionary[int, SyncProxy]] = WeakValueDictionary()  # by id of the async object

    _async_class: ClassVar[type]
    _async: Any
    _thread: EventLoopThread

    def __init_subclass__(cls, of: type | None = None) -> None:
        if of is None:  # a user's class
            return
        cls._async_class = of
        cls._classes[of] = cls
        cls.__doc__ = without_async(of.__doc__ or "")
        for name, member in shared_members(of).items():
            if name not in vars(cls):
                setattr(cls, name, _sync_member(cls, name, member))

    def __init__(self) -> None:
        raise TypeError(f"{type(self).__name__} objects are made by a Grid.")

    @classmethod
    def _of(cls, original: object) -> Self:
        found = cls._objects.get(id(original))
        if not isinstance(found, cls):
            found = cls.__new__(cls)
            found._stand_for(original)
        return found

    def _stand_for(self, original: object) -> None:
        self._async = original
        self._thread = event_loop_thread()
        self._objects[id(original)] = self

    def _finish(self, result: object) -> Any:
        """Return the result of a sync method, from the result of the async method."""
        if inspect.iscoroutine(result):
            with _errors_about_sync_objects():
                return _sync_value(self._thread.run(result))
        if isinstance(result, AsyncIterator):
            return self._iterate(result)
        return _sync_value(result)

    def _iterate(self, source: AsyncIterator[object]) -> Iterator[Any]:
        with _errors_about_sync_objects():
            for item in self._thread.iterate(source):
                yield _sync_value(item)

    def _close(self, closing: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine that closes. After a fork and at the end of the interpreter there is nothing to close."""
        if self._thread.usable:
            self._finish(closing)
        else:
            closing.close()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SyncProxy) and bool(self._async == other._async)

    def __hash__(self) -> int:
        return hash(self._async)

    def __reduce__(self) -> Any:
        return self._async.__reduce__()

    def __repr__(self) -> str:
        return f"{type(self).__name__}{repr(self._async).removeprefix(type(self._async).__name__)}"


def _sync_member(sync_class: type[SyncProxy], name: str, member: Any) -> Any:
    """Return the sync form of a constructor, a class method, a method or a property."""
    async_class = sync_class._async_class
    function: Any = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
    finish = SyncProxy._close if name in ("close", "__exit__") else SyncProxy._finish

    def construct(self: SyncProxy, *args: Any, **options: Any) -> None:
        self._stand_for(async_class(*args, **options))

    def make(cls: type[SyncProxy], *args: Any, **options: Any) -> SyncProxy:
        return cls._of(function(async_class, *args, **options))

    def run(self: SyncProxy, *args: Any, **options: Any) -> Any:
        return finish(self, function(self._async, *args, **options))

    if isinstance(member, classmethod):
        return classmethod(_with_description(make, function, f"{sync_class.__qualname__}.{name}"))
    call = _with_description(construct if name == "__init__" else run, function, f"{sync_class.__qualname__}.{name}")
    return property(call) if isinstance(member, property) else call


def _with_description(call: Any, function: Any, qualified_name: str) -> Any:
    """`call` with the docstring and the signature of an async function, without `await`."""
    wraps(function)(call)
    call.__name__, call.__qualname__ = qualified_name.rpartition(".")[2], qualified_name
    call.__doc__ = without_async(function.__doc__) if function.__doc__ else None
    signature = inspect.signature(function)
    call.__signature__ = signature.replace(return_annotation=without_async(signature.return_annotation))
    return call


def _sync_value(value: Any) -> Any:
    """Return a value with sync objects in place of async ones."""
    kind = SyncProxy._classes.get(type(value))
    if kind is not None:
        return kind._of(value)
    if type(value) is list:
        return [_sync_value(item) for item in value]
    if isinstance(value, Iterator):
        return (_sync_value(item) for item in value)
    return value


@contextmanager
def _errors_about_sync_objects() -> Iterator[None]:
    """Replace the async object in an error with its sync object."""
    try:
        yield
    except GridError as error:
        if hasattr(error, "job"):
            error.job = _sync_value(error.job)
        raise
