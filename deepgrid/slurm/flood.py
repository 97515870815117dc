"""Why Slurm does not answer, as far as the login node can see: who has how many connections to slurmctld.

slurmctld serves a limited number of connections at a time (256 threads up to 24.05). A job can open more, without any
right in Slurm. Then commands of Slurm wait for their timeout.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress

from deepgrid.errors import GridError
from deepgrid.slurm.ssh.login import Runner
from deepgrid.slurm.ssh.scripts import call, read_script, whole_answer

MANY_CONNECTIONS = 64  # from one source at the same time; commands and daemons of Slurm hold theirs for milliseconds

SOURCES = {"from": "from", "account": "of the account"}

_SCRIPT = read_script("flood.sh")


class FloodWatch:
    """Asks the login node for the reason. The answer is cached for `fresh_s`, as many commands fail at once."""

    def __init__(self, login: Runner, fresh_s: float = 30.0, timeout_s: float = 30.0) -> None:
        self._login = login
        self._fresh_s, self._timeout_s = fresh_s, timeout_s
        self._answer: list[str] = []
        self._query_at = 0.0

    async def reason(self, *, timed_out: bool = False) -> str:
        """Return one sentence after a space; nothing without a visible reason.

        `timed_out`: slurmctld surely did not answer.
        """
        if time.monotonic() >= self._query_at:
            self._query_at, self._answer = time.monotonic() + self._fresh_s, []
            with suppress(GridError):
                self._answer = whole_answer(await self._login.run(call(_SCRIPT), timeout_s=self._timeout_s))
        return explain(self._answer, timed_out=timed_out)


def explain(lines: Iterable[str], *, timed_out: bool = False) -> str:
    """Return the sentence for an answer of `flood.sh`. A refused connection needs none: Slurm's message says that."""
    rows = [line.split(" ") for line in lines]
    if ["accepts"] not in rows:
        return ""
    many = [row for row in rows if len(row) == 3 and row[2].isdecimal() and int(row[2]) >= MANY_CONNECTIONS]
    seen = [f"{count} connections {SOURCES[kind]} {name}" for kind, name, count in many if kind in SOURCES]
    if not seen:
        return " slurmctld accepts connections, but does not answer." if timed_out else ""
    return f" slurmctld accepts connections, but may be flooded by {', '.join(seen)}."
