"""The Prefect layer runs on the newest release of Prefect that the project allows."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.long
@pytest.mark.skipif(".grid" in sys.prefix, reason="these tests run on another release already")
@pytest.mark.timeout(1800)
def test_the_prefect_layer_runs_on_the_newest_release() -> None:
    if newest() == f"prefect=={version('prefect')}":
        pytest.skip("the newest release is the installed one, on which all tests of this folder run")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "VIRTUAL_"))}
    done = subprocess.run(
        ["./run", "test", "--prefect", "newest", "-q"],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def newest() -> str:
    """Return the newest release that the package index has and the project allows, as `prefect==VERSION`."""
    command = ["bash", "-c", "set -euo pipefail; source tools/setup.sh; newest_prefect"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
