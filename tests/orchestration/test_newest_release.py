"""The Prefect layer runs on the newest release of Prefect that the project allows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.long
@pytest.mark.skipif(".grid" in sys.prefix, reason="these tests run on another release already")
@pytest.mark.timeout(1800)
def test_the_prefect_layer_runs_on_the_newest_release() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "VIRTUAL_"))}
    done = subprocess.run(
        ["./run", "test", "--prefect", "newest", "-q"],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
