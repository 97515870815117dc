"""Fixtures that the tests of scripts share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sbatch.bucket import bucket, s3_server
from tests.sbatch.images import containers, images
from tests.sbatch.store import store
from tests.sbatch.support import Bench, site_of
from tests.slurm.conftest import box, cluster, key, login, monitor, state_folder

__all__ = [
    "box", "bucket", "cluster", "containers", "images", "key", "login", "monitor", "s3_server", "state_folder", "store",
]  # fmt: skip


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of scripts on a real cluster too, except those that only the recorder can show."""
    if kind := {"bench", "room"} & {*metafunc.fixturenames}:
        only = metafunc.definition.get_closest_marker("recorder")
        real = [pytest.param("slurm", marks=pytest.mark.deep if only else pytest.mark.long)]
        if only and not only.kwargs.get("deep"):
            real = []
        metafunc.parametrize(max(kind), ["recorder", *real], indirect=True)


@pytest.fixture
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    return Bench(tmp_path / "bench", site=site_of(request))
