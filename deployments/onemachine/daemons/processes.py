"""Starts and stops the daemons of the one-machine grid, which outlive the command; runs steps in their order.

Later commands find each process by its record `<state>/run/NAME.json`. The record holds the process id and the
kernel's start time of the process, so another process with a reused id is never mistaken for ours.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path
from subprocess import DEVNULL, Popen

from deepgrid.errors import ConfigurationError
from deepgrid.files.private_files import make_private_folder, write_json

POLL_S = 0.05


@dataclass(frozen=True)
class Daemon:
    """A long-running process and its readiness check.

    `ready` is polled until it is true, every `poll_s`, for at most `ready_within_s`. `env` is added to our environment.
    A process that runs already gets `reload_signal`, if there is one, to read its files again.
    """

    name: str
    argv: Sequence[str]
    ready: Callable[[], bool] = lambda: True
    ready_within_s: float = 60.0
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = "/"
    stop_signal: signal.Signals = signal.SIGTERM
    stop_within_s: float = 20.0
    reload_signal: signal.Signals | None = None
    poll_s: float = POLL_S


def options(**values: object) -> list[str]:
    """Return the options of a command: `key_file="k"` is `--key-file=k`."""
    return [f"--{name.replace('_', '-')}={value}" for name, value in values.items()]


@dataclass(frozen=True)
class _Record:
    """The record of a process for later commands. `born` is None if it ended before its start time could be read."""

    pid: int
    born: int | None
    stop_signal: int
    stop_within_s: float

    @property
    def is_alive(self) -> bool:
        return self.born is not None and _born(self.pid) == self.born

    def end_group(self) -> None:
        """Kill the rest of the process's group, unless another process has the recorded id now."""
        if _born(self.pid) in (None, self.born):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)


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
        if (pid := self.pid(daemon.name)) is not None:
            if daemon.reload_signal is not None:
                os.kill(pid, daemon.reload_signal)
            return
        if (predecessor := self._read(daemon.name)) is not None:
            predecessor.end_group()
        with open(self.log_path(daemon.name), "ab") as log:
            env = {**os.environ, **daemon.env}
            process = Popen(
                daemon.argv, stdin=DEVNULL, stdout=log, stderr=log, cwd=daemon.cwd, env=env, start_new_session=True
            )
        record = _Record(process.pid, _born(process.pid), int(daemon.stop_signal), daemon.stop_within_s)
        write_json(self._file(daemon.name), asdict(record), 0o600)

    def serve(self, *daemons: Daemon) -> None:
        """Start what does not run. Returns when all are ready. Raises ConfigurationError (see `wait_ready`)."""
        for daemon in daemons:
            self.start(daemon)
        for daemon in daemons:
            self.wait_ready(daemon)

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
            time.sleep(daemon.poll_s)

    def stop(self, name: str, sig: signal.Signals | None = None) -> None:
        """Stop one process and the rest of its process group, if they still run.

        With `sig`, only the process itself gets this signal, and its record stays. Tests use this for SIGKILL.
        """
        record = self._read(name)
        if record is None:
            return
        if record.is_alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(record.pid, sig or record.stop_signal)
            deadline = time.monotonic() + record.stop_within_s
            while record.is_alive and time.monotonic() < deadline:
                time.sleep(POLL_S)
        if sig is None:
            record.end_group()
            self._file(name).unlink(missing_ok=True)

    def alive(self, name: str) -> bool:
        """Return whether the recorded process still runs. Another process with its id does not count."""
        return self.pid(name) is not None

    def pid(self, name: str) -> int | None:
        """Return the process id of a live process, otherwise None."""
        record = self._read(name)
        return record.pid if record is not None and record.is_alive else None

    def names(self) -> list[str]:
        """Return the names of all recorded processes, oldest first."""
        return [p.stem for p in sorted(self.run_dir.glob("*.json"), key=lambda p: p.stat().st_mtime_ns)]

    def log_path(self, name: str) -> Path:
        return self.log_dir / f"{name}.log"

    def _file(self, name: str) -> Path:
        return self.run_dir / f"{name}.json"

    def _read(self, name: str) -> _Record | None:
        try:
            return _Record(**json.loads(self._file(name).read_text()))
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    def _failure(self, name: str, what: str) -> ConfigurationError:
        log = self.log_path(name)
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:]) if log.exists() else ""
        return ConfigurationError(f"{name} {what}; the end of {log}:\n{tail}")


def process_fields(pid: int) -> list[str] | None:
    """Return the kernel's fields of a live process, from its state on; None if it ended or is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return None if fields[0] in ("Z", "X") else fields


def _born(pid: int) -> int | None:
    """Start time of a live process in clock ticks since boot."""
    fields = process_fields(pid)
    return None if fields is None else int(fields[19])


def nginx(name: str, configuration: Path, ready: Callable[[], bool]) -> Daemon:
    """nginx with this configuration. It logs to the daemon's log. One that runs already reads the file again."""
    return Daemon(name, ["nginx", "-e", "stderr", "-c", str(configuration)], ready, reload_signal=signal.SIGHUP)


def worker_account() -> str | None:
    """Return the account of nginx's worker processes, which nginx needs if root starts it."""
    return pwd.getpwuid(0).pw_name if os.getuid() == 0 else None


Report = Callable[[str, float], None]


@dataclass(frozen=True)
class Step:
    """A step that runs when the steps in `needs` are done. It must be idempotent."""

    name: str
    do: Callable[[], None]
    needs: tuple[str, ...] = ()


def run_steps(steps: Sequence[Step], report: Report = lambda _name, _seconds: None) -> None:
    """Run all steps. `report` is called for each finished step, with its duration in seconds.

    After a failure no new step starts. When the running steps have ended, the first error is raised.
    Raises ValueError when `needs` name an unknown step or form a cycle.
    """
    named = {step.name: step for step in steps}
    if unknown := {need for step in steps for need in step.needs} - named.keys():
        raise ValueError(f"Steps need unknown ones: {', '.join(sorted(unknown))}")
    order = TopologicalSorter({step.name: step.needs for step in steps})
    order.prepare()
    failure: BaseException | None = None
    running: dict[Future[float], str] = {}
    with ThreadPoolExecutor(max_workers=max(1, len(steps))) as pool:
        while running or (failure is None and order.is_active()):
            for name in order.get_ready() if failure is None else ():
                running[pool.submit(_run_and_time, named[name])] = name
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                name = running.pop(future)
                if (error := future.exception()) is not None:
                    failure = failure or error
                else:
                    order.done(name)
                    report(name, future.result())
    if failure is not None:
        raise failure


def _run_and_time(step: Step) -> float:
    started = time.monotonic()
    step.do()
    return time.monotonic() - started
