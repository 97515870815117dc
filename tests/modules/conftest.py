"""Real git repositories with modules."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.modules.support import Origin


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    folder = tmp_path / "origin"
    folder.mkdir()
    found = Origin(folder)
    found.git("init", "--quiet", "--initial-branch=main")
    return found


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
