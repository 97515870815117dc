"""Unit tests of the web app, on vectors that Python writes; and the packed sizes of the build (W1)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize("command", ["test", "size"])
def test_the_web_app(command: str) -> None:
    done = subprocess.run(
        [REPOSITORY / "tools" / "web", command], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
