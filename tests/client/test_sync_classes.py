"""The sync classes are the async ones without `await`: same names, arguments and docstrings, and a stub that holds."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Self

import pytest

import deepgrid
from deepgrid.client.sync import classes
from deepgrid.client.sync.sync_proxy import SyncProxy, without_async
from deepgrid.errors import GridError
from tools.sync_client.stub import PATH, class_text, stub

ROOT = Path(__file__).parents[2]
NAMES = ("Grid", "Job", "JobSet", "Jobs", "PortForward", "Wallet")
PAIRS = [(getattr(deepgrid, f"Async{name}"), getattr(deepgrid, name)) for name in NAMES]
RENAMED = {"__aenter__": "__enter__", "__aexit__": "__exit__", "__aiter__": "__iter__"}


class BoxError(GridError):
    """An error about a box."""

    def __init__(self, job: object) -> None:
        super().__init__("It is full.")
        self.job = job


class AsyncBox:
    """An async box: `async with AsyncGrid() as grid`."""

    def __init__(self, size: int = 3) -> None:
        """Make a box."""
        self.size_now = size
        self._other = self

    @classmethod
    def of(cls, size: int) -> Self:
        """Return a box of this size."""
        return cls(size)

    @property
    def size(self) -> int:
        """Its size."""
        return self.size_now

    @property
    async def later_size(self) -> int:
        """Its size, which is waited for."""
        await asyncio.sleep(0)
        return self.size_now

    async def same(self, *sizes: int, **named: int) -> Self:
        """Set the size, and return the box."""
        self.size_now = sum(sizes) + sum(named.values())
        return self

    async def boxes(self) -> list[AsyncBox | int]:
        """Return boxes and numbers."""
        return [self, 1, AsyncBox()]

    async def each(self) -> AsyncIterator[AsyncBox]:
        """Yield boxes, one by one."""
        yield self
        yield AsyncBox(7)

    async def fill(self) -> None:
        """Fail."""
        raise BoxError(self)

    async def _hidden(self) -> None: ...

    def __iter__(self) -> Iterator[AsyncBox]:
        return iter([self])

    def __len__(self) -> int:
        return self.size_now

    def __repr__(self) -> str:
        return f"AsyncBox({self.size_now})"


@pytest.fixture
def box_class() -> Iterator[Any]:
    class Box(SyncProxy, of=AsyncBox):
        """Replaced."""

    yield Box
    del SyncProxy._classes[AsyncBox]


def test_each_form_of_member_has_its_sync_form(box_class: Any) -> None:
    box = box_class(4)
    assert (box.size, box.later_size, len(box), repr(box)) == (4, 4, 4, "Box(4)")
    assert box.same(1, 2, more=3) is box
    assert (box.size, box_class.of(9).size) == (6, 9)
    same, number, other = box.boxes()
    assert (same is box, number, type(other)) == (True, 1, box_class)
    assert [type(one) for one in box.each()] == [box_class] * 2
    assert next(box.each()) is box
    assert list(box) == [box]
    assert not hasattr(box, "_hidden")


def test_an_error_is_about_the_sync_object(box_class: Any) -> None:
    box = box_class()
    with pytest.raises(BoxError) as caught:
        box.fill()
    assert caught.value.job is box


def test_a_sync_object_lives_as_long_as_it_is_used(box_class: Any) -> None:
    box = box_class()
    original = box._async
    del box
    assert not [one for one in SyncProxy._objects.values() if one._async is original]


def _members(kind: type) -> dict[str, Any]:
    """Return the public members of a class and its bases."""
    own: dict[str, Any] = {}
    for one in reversed(kind.__mro__[:-1]):
        own |= {RENAMED.get(name, name): member for name, member in vars(one).items()}
    return {name: member for name, member in own.items() if not name.startswith("_") or name in RENAMED.values()}


def _function(member: Any) -> Any:
    if isinstance(member, property):
        return member.fget
    return getattr(member, "__func__", member)


def _signature(function: Any) -> tuple[Any, str]:
    signature = inspect.signature(function)
    return list(signature.parameters.values()), without_async(signature.return_annotation)


@pytest.mark.parametrize(("async_", "sync"), PAIRS, ids=lambda kind: kind.__name__)
def test_names_signatures_and_docstrings_are_the_same(async_: type, sync: type) -> None:
    ours, theirs = _members(sync), _members(async_)
    assert ours.keys() == theirs.keys()
    assert sync.__doc__ == without_async(async_.__doc__ or "")
    for name in theirs:
        one, other = _function(ours[name]), _function(theirs[name])
        assert _signature(one) == _signature(other), name
        assert one.__doc__ == (None if other.__doc__ is None else without_async(other.__doc__)), name
        assert type(ours[name]) is type(theirs[name]), name
        assert not inspect.iscoroutinefunction(one), name
    if async_ is deepgrid.AsyncGrid:
        assert inspect.signature(sync) == inspect.signature(async_)


def test_the_stub_is_fresh() -> None:
    assert PATH.read_text() == stub(), "Run `.venv/bin/python -m tools.sync_client`."


@pytest.mark.deep
def test_type_checkers_find_in_the_stub_what_python_has() -> None:
    program = [sys.executable, "-m", "mypy.stubtest", classes.__name__, "--mypy-config-file", "pyproject.toml"]
    done = subprocess.run(program, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout


def test_a_form_without_a_sync_one_is_named() -> None:
    class AsyncLid:
        def on(self, box: AsyncBox) -> None: ...

    with pytest.raises(SystemExit, match=r"AsyncLid\.on\(self, box: AsyncBox\) -> None has no sync form"):
        class_text(AsyncLid, "Lid")


def test_docstrings_lose_await_and_async() -> None:
    text = "Example:\n    async with AsyncGrid() as grid:\n        async for line in (await grid.job(7)).logs(): ..."
    assert without_async(text) == "Example:\n    with Grid() as grid:\n        for line in (grid.job(7)).logs(): ..."
    assert without_async("An `AsyncJob` of an AsyncJobSet.") == "A `Job` of a JobSet."
