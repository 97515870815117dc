"""Jobs that run until the test lets them end, on a machine of any speed."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

from deployments.onemachine.grid import LocalGrid


class Gate:
    """A file that jobs wait for, in a folder that they can read."""

    def __init__(self, grid: LocalGrid) -> None:
        self._file: Path = grid.state / "storage" / f"gate-{time.monotonic_ns()}"

    @property
    def pass_command(self) -> str:
        """A shell command that ends when the gate is open."""
        return f"until [ -e {shlex.quote(str(self._file))} ]; do sleep 0.5; done"

    def open(self) -> None:
        """Let the jobs end."""
        self._file.touch()
