"""Fixtures that the tests of scripts share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sbatch.bucket import bucket, s3_server
from tests.sbatch.images import containers, images
from tests.sbatch.store import store
from tests.sbatch.support import Bench
from tests.slurm.conftest import box, cluster, key, login, monitor, state_folder

__all__ = [
    "box", "bucket", "cluster", "containers", "images", "key", "login", "monitor", "s3_server", "state_folder", "store",
]  # fmt: skip


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "bench")
