"""The named points at which the supervisor can be killed."""

from __future__ import annotations

import inspect
from importlib import import_module
from operator import attrgetter

import pytest

from tests.chaos.points import POINTS


@pytest.mark.parametrize(("module", "path"), POINTS.values(), ids=POINTS)
def test_the_code_behind_a_point_has_not_moved(module: str, path: str) -> None:
    assert inspect.iscoroutinefunction(attrgetter(path)(import_module(module)))
