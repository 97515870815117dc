"""`./run demo`: starts the grid, and shows one job from submission to bill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from deployments.onemachine.grid import LocalGrid
from deployments.onemachine.view import login_words, web_words

JOB_FILE = Path(__file__).resolve().parents[2] / "examples" / "hello-world.yaml"
CREDITS = 100


def demo(grid: LocalGrid, bring_up: Callable[[LocalGrid], None], *, end_at_once: bool) -> int:
    """Run and show a job. Returns the job's exit status.

    On a terminal, the grid then stays up until Ctrl-C, unless `end_at_once`. A grid that was up before is not stopped.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    was_up = grid.is_up()
    try:
        bring_up(grid)
        status = _show_job(grid)
        if not end_at_once and sys.stdin.isatty():
            _stay(grid)
        return status
    finally:
        if not was_up:
            grid.down()


def _show_job(grid: LocalGrid) -> int:
    """Submit the example as the grid's customer, and watch it until its end."""
    argv = [str(grid.roles.dps), "submit", str(JOB_FILE), "--credits", str(CREDITS), "--job-name", "hello", "--force"]
    print(f"\n$ dps {' '.join(argv[1:])} --watch", flush=True)
    env = {**os.environ, **grid.roles.customer_environment()}
    status = subprocess.run([*argv, "--watch", "--exit-on-job-exit"], env=env, check=False).returncode
    print(f"\nThe same life as a flow run with its tasks: {grid.prefect.ui_url}/runs", flush=True)
    print(f"{login_words(grid.prefect)}\n{web_words(grid.web_address())}", flush=True)
    return status


def _stay(grid: LocalGrid) -> None:
    print(f"The grid stays up until Ctrl-C. Its customer elsewhere: source {grid.state}/customer.env", flush=True)
    try:
        signal.pause()
    except KeyboardInterrupt:
        print()
