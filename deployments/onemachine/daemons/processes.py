"""Starts and stops the daemons of the one-machine grid. They outlive the command that started them.

Later commands find each process by its record `<state>/run/NAME.json`. The record holds the process id and the
kernel's start time of the process, so another process with a reused id is never mistaken for ours.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from deepgrid.errors import ConfigurationError
from deepgrid.files.private_files import make_private_folder

POLL_S = 0.05


@dataclass(frozen=True)
class Daemon:
    """A long-running process and its readiness check.

    `ready` is polled until it is true, for at most `ready_within_s`. `env` is added to our environment.
    """

    name: str
    argv: Sequence[str]
    ready: Callable[[], bool] = lambda: True
    ready_within_s: float = 60.0
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = "/"
    stop_signal: signal.Signals = signal.SIGTERM
    stop_within_s: float = 20.0


class ProcessTable:
    """The processes of one grid, with records under its state folder."""

    def __init__(self, state: Path) -> None:
        self.run_dir = state / "run"
        self.log_dir = state / "log"
        for folder in (self.run_dir, self.log_dir):
            make_private_folder(folder)

    def start(self, daemon: Daemon) -> None:
        """Start `daemon` unless it runs already. Returns at once (see `wait_ready`).

        If an earlier daemon of this name died, the rest of its process group is killed first.
        """
        if self.alive(daemon.name):
            return
        if (predecessor := self._read(daemon.name)) is not None:
            _end_group(predecessor)
        with open(self.log_path(daemon.name), "ab") as log:
            process = subprocess.Popen(
                list(daemon.argv), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=daemon.cwd,
                env={**os.environ, **daemon.env}, start_new_session=True,
            )  # fmt: skip
        record = {
            "pid": process.pid,
            "born": _born(process.pid),
            "stop_signal": int(daemon.stop_signal),
            "stop_within_s": daemon.stop_within_s,
        }
        draft = self._record(daemon.name).with_suffix(".draft")
        draft.write_text(json.dumps(record))
        draft.rename(self._record(daemon.name))

    def wait_ready(self, daemon: Daemon) -> None:
        """Wait until the daemon is ready.

        Raises ConfigurationError with the end of its log if it died or was not ready in time.
        """
        deadline = time.monotonic() + daemon.ready_within_s
        while not daemon.ready():
            if not self.alive(daemon.name):
                raise self._failure(daemon.name, "ended while starting")
            if time.monotonic() > deadline:
                raise self._failure(daemon.name, f"does not serve after {daemon.ready_within_s:.0f} s")
            time.sleep(POLL_S)

    def stop(self, name: str, sig: signal.Signals | None = None) -> None:
        """Stop one process and the rest of its process group, if they still run.

        With `sig`, only the process itself gets this signal, and its record stays. Tests use this for SIGKILL.
        """
        record = self._read(name)
        if record is None:
            return
        if self.alive(name):
            _kill(record["pid"], sig or signal.Signals(record["stop_signal"]))
            deadline = time.monotonic() + record["stop_within_s"]
            while self.alive(name) and time.monotonic() < deadline:
                time.sleep(POLL_S)
        if sig is None:
            _end_group(record)
            self._record(name).unlink(missing_ok=True)

    def alive(self, name: str) -> bool:
        """Whether the recorded process still runs. Another process with its id does not count."""
        record = self._read(name)
        return record is not None and record["born"] is not None and _born(record["pid"]) == record["born"]

    def pid(self, name: str) -> int | None:
        """Process id of a live process, else None."""
        record = self._read(name)
        return record["pid"] if record is not None and self.alive(name) else None

    def names(self) -> list[str]:
        """Names of all recorded processes, oldest first."""
        return [p.stem for p in sorted(self.run_dir.glob("*.json"), key=lambda p: p.stat().st_mtime_ns)]

    def log_path(self, name: str) -> Path:
        return self.log_dir / f"{name}.log"

    def _record(self, name: str) -> Path:
        return self.run_dir / f"{name}.json"

    def _read(self, name: str) -> dict | None:  # type: ignore[type-arg]
        try:
            return json.loads(self._record(name).read_text())  # type: ignore[no-any-return]
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    def _failure(self, name: str, what: str) -> ConfigurationError:
        log = self.log_path(name)
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:]) if log.exists() else ""
        return ConfigurationError(f"{name} {what}; the end of {log}:\n{tail}")


def _born(pid: int) -> int | None:
    """Start time of a process in clock ticks since boot; None if it ended (also as a zombie of the kernel)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return None if fields[0] in ("Z", "X") else int(fields[19])


def _kill(pid: int, sig: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, sig)


def _end_group(record: dict) -> None:  # type: ignore[type-arg]
    """Kill the rest of a process's group, unless another process has the recorded id now."""
    if _born(record["pid"]) in (None, record["born"]):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(record["pid"], signal.SIGKILL)
