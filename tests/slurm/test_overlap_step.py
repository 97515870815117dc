"""A session's step, on the login node."""

from __future__ import annotations

import subprocess
from pathlib import Path

from deepgrid.slurm.ssh.scripts import call
from deepgrid.slurm.submit.overlap_step import _STEP


def test_no_session_begins_before_the_jobs_script(tmp_path: Path) -> None:
    """A process of the session could stop the guard. Such a job counts as never begun, and would run for nothing."""
    unstarted = tmp_path / "run" / "unstarted"
    unstarted.parent.mkdir()
    unstarted.touch()
    step = call(_STEP, "", "", str(tmp_path), 1, 1, "print()")
    done = subprocess.run(step, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "has not begun yet" in done.stderr
