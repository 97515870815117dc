"""The second part of the tutorial, followed exactly: data in, a sweep, results out, a plot."""

from __future__ import annotations

from pathlib import Path

import pytest

from deployments.onemachine.grid import LocalGrid
from tests.docs.reader import Reader

pytestmark = [pytest.mark.deep, pytest.mark.timeout(900)]


def test_the_study_of_the_tutorial(grid: LocalGrid, tmp_path: Path) -> None:
    (tmp_path / ".grid").symlink_to(grid.state)
    Reader(tmp_path).follow("docs/tutorial/study.md")
    plot = (tmp_path / "study.png").read_bytes()
    assert plot.startswith(b"\x89PNG") and len(plot) > 10_000
