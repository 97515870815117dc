"""The process of the supervisor under test: start it, kill it, or let it die at a named point."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from tests.chaos.points import PLACES
from tests.chaos.supervisor import Patches

POLL_S = 0.02
DIES_WITHIN_S = 90.0


class NotReached(AssertionError):
    """The supervisor did not reach the place where it should be killed."""


class Supervisor:
    """One supervisor of `cluster`. Its log continues after a restart."""

    def __init__(self, cluster: str, ready: Path, folder: Path, patches: Patches) -> None:
        self.cluster = cluster
        self.log = folder / "supervisor.log"
        self._ready = ready
        self._kills = Path(patches.kills)
        self._settings = folder / "settings.json"
        self._pid = 0
        self._born = ""
        self.started_at = 0.0
        folder.mkdir(parents=True, exist_ok=True)
        patches.save(self._settings)

    @property
    def alive(self) -> bool:
        """Whether the process that was started last is running."""
        return bool(self._pid) and _born(self._pid) == self._born

    def start(self, environment: Mapping[str, str] | None = None) -> None:
        """Start it unless it runs. Returns when the process exists. A new `environment` makes the start slower."""
        if self.alive:
            return
        order = {
            "cluster": self.cluster, "settings": str(self._settings), "log": str(self.log),
            "environment": dict(environment or {}),
        }  # fmt: skip
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(str(self._ready))
            with peer.makefile("rw") as stream:
                stream.write(json.dumps(order) + "\n")
                stream.flush()
                self._pid = int(stream.readline())
        self.started_at = time.monotonic()
        self._born = _born(self._pid)

    def send(self, sig: signal.Signals) -> None:
        """Send it a signal if it runs."""
        if self.alive:
            os.kill(self._pid, sig)

    async def kill(self, sig: signal.Signals = signal.SIGKILL) -> None:
        """End it with a signal. Returns when the process is gone."""
        self.send(sig)
        await self.gone()

    async def gone(self, within_s: float = DIES_WITHIN_S) -> bool:
        """Return whether the process died within that time."""
        deadline = time.monotonic() + within_s
        while self.alive:
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(POLL_S)
        return True

    def arm(self, place: str, nth: int = 1) -> None:
        """Kill it at the `nth` arrival at `place` from now on, in this process or a later one."""
        assert place in PLACES, place
        draft = self._kills.with_suffix(".draft")
        draft.write_text(json.dumps({"place": place, "nth": nth, "token": secrets.token_hex(4)}))
        draft.rename(self._kills)

    def disarm(self) -> None:
        self._kills.unlink(missing_ok=True)


def _born(pid: int) -> str:
    """Return the kernel's start time of a process; empty when it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return ""
    return "" if fields[0] in ("Z", "X") else fields[19]
