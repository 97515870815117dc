"""The supervisor under test: the real body of `dps provider serve`, patched from outside before it starts.

    python -m tests.chaos.supervisor CLUSTER SETTINGS      run one supervisor in this process
    python -m tests.chaos.supervisor --ready SOCKET        import everything and fork supervisors on request

SETTINGS is a JSON file with the fields of `Patches`. Importing the code takes seconds, and a test kills dozens of
supervisors. So one process imports it once. For each line on its socket it forks a supervisor and answers with the
process id. A line holds the arguments of one supervisor and its log file in JSON.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

FLOWS = tuple(
    f"flows.{name}"
    for name in ("cancel_jobs", "claim_jobs", "collect_zombies", "register_provider", "run_job", "top_up_jobs")
)
RETRY_S = 10.0  # adoption schedules a stopped run again after minutes; rounds must be shorter


@dataclass(frozen=True)
class Patches:
    """The differences from the provider's block: ports of the proxies, and a file that arms a kill."""

    ssh_port: int
    known_hosts: str
    book: str
    kills: str
    state: str  # each supervisor has its own folder, because there may be two

    def save(self, file: Path) -> None:
        file.write_text(json.dumps(asdict(self)))


def serve(cluster: str, settings_file: str) -> None:
    """Run the supervisor until a signal or a kill point ends it."""
    from blocks import Provider
    from deepgrid.provider.session import ProviderSettings
    from deployments.cli import serving
    from deployments.provider import supervisor
    from deployments.provider.carriers import CarrierSettings
    from tests.chaos.points import Kills, wrap_all

    if "FAKETIME_TIMESTAMP_FILE" in os.environ:  # libfaketime reports an error for Python's way to sleep
        time.sleep = _sleep
    patches = Patches(**json.loads(Path(settings_file).read_text()))
    original = Provider.settings

    def settings(self: Provider) -> ProviderSettings:
        real = original(self)
        login = replace(real.login, port=patches.ssh_port, known_hosts_file=Path(patches.known_hosts))
        return replace(
            real, login=login, book=Path(patches.book), state=Path(patches.state),
            claim_stays_s=ProviderSettings.claim_stays_s,
        )  # fmt: skip

    Provider.settings = settings  # type: ignore[method-assign]
    wrap_all(Kills(Path(patches.kills)))
    carriers = CarrierSettings(ended_run_retry_s=RETRY_S, compare_every_s=RETRY_S, error_retry_s=RETRY_S)
    serving.serve(partial(supervisor.serve_provider, carriers=carriers), cluster)


def _sleep(seconds: float) -> None:
    threading.Event().wait(seconds)


def stand_ready(path: str) -> None:
    """Fork supervisors on request, without end. The kernel reaps dead ones."""
    _import_all()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    server = socket.socket(socket.AF_UNIX)
    server.bind(f"{path}.new")
    server.listen()
    os.rename(f"{path}.new", path)  # a test that finds it can connect
    while True:
        peer, _ = server.accept()
        with peer, peer.makefile("rw") as stream:
            order = json.loads(stream.readline())
            pid = os.fork()
            if pid == 0:
                server.close()
                _become(order)
            stream.write(f"{pid}\n")


def _become(order: dict[str, Any]) -> None:
    """Run the supervisor of `order`. Does not return."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(log, stream)
    arguments = [order["cluster"], order["settings"]]
    if order["environment"]:  # such as a preloaded library, which takes effect in a new program only
        os.execve(
            sys.executable, [sys.executable, "-m", __spec__.name, *arguments], {**os.environ, **order["environment"]}
        )
    status = 1
    try:
        serve(*arguments)
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _import_all() -> None:
    for name in (
        "deepgrid.cli.main",
        "deployments.cli.provider",
        "deployments.provider.supervisor",
        "orchestration.service",
        "tests.chaos.points",
        *FLOWS,
    ):
        import_module(name)


if __name__ == "__main__":
    if sys.argv[1] == "--ready":
        stand_ready(sys.argv[2])
    else:
        serve(*sys.argv[1:])
