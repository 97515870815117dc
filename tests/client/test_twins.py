"""The sync classes are the async ones without `await`: same names, arguments and docstrings, and types that hold."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import deepgrid
from tools.sync_client.modules import SYNC, formatted, generated, sources
from tools.sync_client.values import TWINS, words

ROOT = Path(__file__).parents[2]
PAIRS = [
    (getattr(deepgrid, name), getattr(deepgrid, sync)) for name, (sync, _) in TWINS.items() if name in deepgrid.__all__
]
RENAMED = {"__aenter__": "__enter__", "__aexit__": "__exit__", "__aiter__": "__iter__"}
HEADER = "from deepgrid import "


def _members(kind: type) -> dict[str, Any]:
    """The public members that a class defines itself."""
    own = {RENAMED.get(name, name): member for name, member in vars(kind).items()}
    return {name: member for name, member in own.items() if not name.startswith("_") or name in RENAMED.values()}


def _function(member: Any) -> Any:
    if isinstance(member, property):
        return member.fget
    return getattr(member, "__func__", member)


def _arguments(function: Any) -> list[tuple[str, Any, str, Any]]:
    return [
        (one.name, one.kind, words(str(one.annotation)), one.default)
        for one in inspect.signature(function).parameters.values()
    ]


def _is_internal(member: Any) -> bool:
    return "Connection" in inspect.get_annotations(_function(member)).values()


@pytest.mark.parametrize(("async_", "sync"), PAIRS, ids=lambda kind: kind.__name__)
def test_names_arguments_and_docstrings_are_the_same(async_: type, sync: type) -> None:
    ours, theirs = _members(sync), {name: one for name, one in _members(async_).items() if not _is_internal(one)}
    attributes = set(re.findall(r"^ {4}(\w+): ", (inspect.getdoc(async_) or "").partition("Attributes:")[2], re.M))
    assert ours.keys() == theirs.keys() | attributes
    assert sync.__doc__ == words(async_.__doc__ or "")
    for name in theirs:
        one, other = _function(ours[name]), _function(theirs[name])
        assert _arguments(one) == _arguments(other), name
        assert one.__doc__ == (None if other.__doc__ is None else words(other.__doc__)), name
        assert type(ours[name]) is type(theirs[name]), name


def test_the_constructors_are_the_same() -> None:
    assert _arguments(deepgrid.Grid.__init__) == _arguments(deepgrid.AsyncGrid.__init__)


def test_nothing_is_awaited_by_users_of_the_sync_classes() -> None:
    for _, sync in PAIRS:
        assert not [name for name, one in _members(sync).items() if inspect.iscoroutinefunction(_function(one))]


def test_the_generated_files_are_fresh() -> None:
    stale = [file.name for file in sources() if (SYNC / file.name).read_text() != formatted(generated(file))]
    assert not stale, "Run `.venv/bin/python -m tools.sync_client`."
    assert {file.name for file in SYNC.glob("*.py")} == {"__init__.py", *(file.name for file in sources())}
