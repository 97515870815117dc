"""A customer with 10,000 jobs: the table is usable at once, keys answer, and memory stays small."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

ROOM = 8


@pytest.mark.deep
def test_ten_thousand_jobs_are_no_burden() -> None:
    """The limits of the specification, in CPU time and with room for slow processors."""
    done = subprocess.run([sys.executable, "-m", "tests.tui.many_jobs"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["usable_cpu_s"] <= ROOM * 2
    assert figures["key_cpu_s"] <= ROOM * 0.1
    assert figures["filter_cpu_s"] <= ROOM * 0.5  # a letter of a filter looks at all jobs
    assert figures["peak_mb"] < 200
