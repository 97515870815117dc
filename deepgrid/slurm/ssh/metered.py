"""A login that tells how each of its commands went."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deepgrid.errors import GridError
from deepgrid.slurm.ssh.channel import CommandResult
from deepgrid.slurm.ssh.login import Runner


class MeteredLogin:
    """As the login behind it; `ran` is told of each command: the error, or None when an answer came."""

    def __init__(self, login: Runner, ran: Callable[[GridError | None], None]) -> None:
        self._login = login
        self._ran = ran

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float | None = None) -> CommandResult:
        """As `Login.run`."""
        try:
            result = await self._login.run(argv, stdin=stdin, timeout_s=timeout_s)
        except GridError as error:
            self._ran(error)
            raise
        self._ran(None)
        return result

    async def close(self) -> None:
        """Close the login."""
        await self._login.close()
