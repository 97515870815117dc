"""A login that reports the outcome of each command, for metrics, and makes a span of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePath

from deepgrid.errors import GridError
from deepgrid.slurm.ssh.channel import CommandResult
from deepgrid.slurm.ssh.login import Runner
from deepgrid.spans import span


class MeteredLogin:
    """Wraps a login. Calls `report` after each command, with the error or with None when the command answered."""

    def __init__(self, login: Runner, report: Callable[[GridError | None], None]) -> None:
        self._login = login
        self._report = report

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float | None = None) -> CommandResult:
        """As `Login.run`."""
        try:
            with span(f"ssh {PurePath(argv[0]).name}"):
                result = await self._login.run(argv, stdin=stdin, timeout_s=timeout_s)
        except GridError as error:
            self._report(error)
            raise
        self._report(None)
        return result

    async def close(self) -> None:
        """Close the login."""
        await self._login.close()
