"""Fixtures: services that keep files, and a folder in which scripts of jobs run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sbatch.bucket import bucket, s3_server  # noqa: F401 - fixtures
from tests.sbatch.support import Bench
from tests.services.conftest import start  # noqa: F401 - a fixture
from tests.services.files.support import FileGrid
from tests.services.support import Start


@pytest.fixture
async def files(start: Start, tmp_path: Path) -> FileGrid:  # noqa: F811
    store = tmp_path / "files"
    return FileGrid(await start(files=str(store)), store)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "bench")
