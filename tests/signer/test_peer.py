"""The account behind a connection is the one that opened it, or unknown."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import subprocess
from collections.abc import Iterator

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from deepgrid.signer.peer import OwnAccount, is_supported, uid_behind
from tests.waiting import until

OTHER_UID = 4242
CONNECT = "exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected && read"


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def test_linux_tells_the_account() -> None:
    assert is_supported()


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_own_connections(listener: socket.socket, family: socket.AddressFamily) -> None:
    """An IPv6 socket reaches 127.0.0.1 by its mapped address."""
    here = listener.getsockname()
    with socket.socket(family) as own:
        own.connect((here[0] if family == socket.AF_INET else f"::ffff:{here[0]}", here[1]))
        accepted, peer = listener.accept()
        with accepted:
            assert uid_behind(peer, here) == os.geteuid()
            own.shutdown(socket.SHUT_WR)
            assert uid_behind(peer, here) == os.geteuid()


@pytest.mark.skipif(os.getuid() != 0, reason="only root starts a process as another account")
def test_another_account(listener: socket.socket) -> None:
    here = listener.getsockname()
    become = ["setpriv", f"--reuid={OTHER_UID}", f"--regid={OTHER_UID}", "--clear-groups"]
    argv = [*become, "bash", "-c", CONNECT.format(port=here[1])]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"connected\n"
        accepted, peer = listener.accept()
        assert uid_behind(peer, here) == OTHER_UID
        other.communicate()
        assert accepted.recv(1) == b""
        assert uid_behind(peer, here) is None
        accepted.close()
        assert uid_behind(peer, here) is None


def test_a_closed_connection_belongs_to_no_account(listener: socket.socket) -> None:
    """The kernel counts closed sockets as root's, and `accept` still returns them."""
    here = listener.getsockname()
    with socket.create_connection(here) as own:
        own.sendall(b"a request")
    accepted, peer = listener.accept()
    with accepted:
        assert accepted.recv(100) == b"a request"
        assert uid_behind(peer, here) is None


def test_a_listener_is_no_peer(listener: socket.socket) -> None:
    here = listener.getsockname()
    assert uid_behind(here, ("127.0.0.1", 1)) is None
    assert uid_behind(("127.0.0.1", 1), here) is None


async def test_a_connection_that_was_reset_is_refused_without_an_error(listener: socket.socket) -> None:
    """The server then knows no peer. An error here would let any account fill the log with tracebacks."""
    results: list[BaseException | None] = []

    async def never(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise AssertionError("a request of an unknown account passed")

    guarded = OwnAccount(never)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await guarded(scope, receive, send)
            results.append(None)
        except BaseException as error:
            results.append(error)

    with socket.create_connection(listener.getsockname()) as own:  # before the server accepts connections
        own.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing resets it
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None))
    serving = asyncio.create_task(server.serve([listener]))
    try:
        await until(lambda: results)
    finally:
        server.should_exit = True
        await serving
    assert results == [None]
