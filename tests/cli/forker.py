"""Starts `dps` quickly: one process imports it once, and forks a process for each start.

    python -m tests.cli.forker --serve SOCKET      import `dps`, then fork on request
    python -I -S forker.py SOCKET ARGUMENT...      run `dps` with this environment, folder, input and output

The second command ends with the status or the signal of `dps`, and passes signals on. If it is killed, `dps` is too.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import sys
from typing import Any, NoReturn

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PRELOADED = (
    *(f"deepgrid.cli.verbs.{verbs}" for verbs in ("money", "job", "provider", "submit", "workflow")),
    "deepgrid.cli.main", "deepgrid.chain.node.web3_provider", "deepgrid.chain.writer", "deepgrid.client.grid",
    "deepgrid.modules", "deepgrid.sbatch", "deepgrid.services.client", "anyio", "h2", "httpcore", "web3",
)  # fmt: skip


def launch(path: str, arguments: list[str]) -> NoReturn:
    streams = [number for number in (0, 1, 2) if _is_open(number)]
    order = {"arguments": arguments, "environment": dict(os.environ), "folder": os.getcwd(), "streams": streams}
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(path)
        socket.send_fds(peer, [b"."], streams)
        peer.sendall(json.dumps(order).encode() + b"\n")
        answers = peer.makefile()
        pid = int(answers.readline())
        for number in FORWARDED:
            signal.signal(number, lambda number, _: os.kill(pid, number))
        status = int(answers.readline())
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def serve(path: str) -> None:
    from importlib import import_module

    for name in PRELOADED:
        import_module(name)
    gc.freeze()  # a collection in a fork would copy all that was imported
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    server = socket.socket(socket.AF_UNIX)
    server.bind(f"{path}.new")
    server.listen()
    os.rename(f"{path}.new", path)  # a test that finds it can connect
    while True:
        peer, _ = server.accept()
        if os.fork() == 0:
            server.close()
            _watch(peer)
        peer.close()


def _watch(peer: socket.socket) -> NoReturn:
    """Run one `dps` as a child, and report its end to the peer. Does not return."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, streams, _, _ = socket.recv_fds(peer, 1, 3)
    order = json.loads(peer.makefile().readline())
    pid = os.fork()
    if pid == 0:
        peer.close()
        _become(order, streams)
    for stream in (*streams, 0, 1, 2):
        os.close(stream)
    peer.sendall(b"%d\n" % pid)
    ended = os.pidfd_open(pid)
    ready, _, _ = select.select([ended, peer], [], [])
    if ended not in ready:  # the peer was killed
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if ended in ready:
        peer.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _become(order: dict[str, Any], streams: list[int]) -> NoReturn:
    """Run `dps` in this process. Does not return."""
    import time

    for number in (0, 1, 2):
        os.close(number)
    for number, stream in zip(order["streams"], streams, strict=True):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = sys.stdout = sys.stderr = None  # as Python sets a stream whose descriptor is closed
    if 0 in order["streams"]:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - they stay open to the end
    if 1 in order["streams"]:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if 2 in order["streams"]:
        sys.stderr = open(2, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["dps", *order["arguments"]]
    from deepgrid.cli.main import main

    main()
    sys.exit()  # ends like any Python program, even by an exception


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(sys.argv[2])
    else:
        launch(sys.argv[1], sys.argv[2:])
