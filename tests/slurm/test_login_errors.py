"""Whatever the SSH library raises, and whatever a server sends, becomes one of our errors with a next step."""

from __future__ import annotations

import asyncio
import errno
import random
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest
from paramiko import ssh_exception

from deepgrid.errors import ConfigurationError, GridError, SlurmUnreachable
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.ssh.login_settings import Endpoint, LoginSettings
from deepgrid.slurm.ssh.ssh_errors import explain, explain_forward
from tests.slurm.support import Box

NODE = Endpoint("login", 22, "grid", Path("key"), Path("known"))
JUMP = replace(NODE, host="jump", role="jump host")
KEY = paramiko.RSAKey.generate(2048)
RAISED: list[Exception] = [
    paramiko.SSHException("strange"), paramiko.AuthenticationException("no"),
    paramiko.PasswordRequiredException("pass"),
    paramiko.BadAuthenticationType("no keys", ["password"]), ssh_exception.PartialAuthentication(["otp"]),
    ssh_exception.UnableToAuthenticate("no"), paramiko.ChannelException(2, "Connect failed"),
    paramiko.BadHostKeyException("login", KEY, KEY),
    paramiko.ProxyCommandFailure("nc", "died"),
    ssh_exception.NoValidConnectionsError({("::1", 22): OSError(errno.ECONNREFUSED, "Connection refused")}),
    ssh_exception.CouldNotCanonicalize("login"),
    ssh_exception.ConfigParseError("x"),
    ssh_exception.MessageOrderError("x"),
    ssh_exception.IncompatiblePeer("no acceptable kex algorithm"), EOFError(), TimeoutError(),
    TimeoutError("timed out"),
    ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"),
    ConnectionRefusedError(errno.ECONNREFUSED, "refused"),
    OSError(errno.EHOSTUNREACH, "No route to host"), OSError(),
    socket.gaierror(-2, "Name or service not known"),
    struct.error("unpack"), ValueError("bad"), KeyError("x"), IndexError(), AttributeError("None"),
    AssertionError(),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), UnicodeError("label too long"), OverflowError("port"),
    Exception(),
    RuntimeError("x" * 10_000), MemoryError(),
]  # fmt: skip


PLACES = ("__init__", "start_client", "get_remote_server_key", "auth_publickey", "open_session")


@pytest.mark.parametrize("fault", RAISED, ids=lambda fault: type(fault).__name__)
def test_each_error_of_the_library_becomes_ours_without_its_class_name(fault: Exception) -> None:
    for error in (explain(fault, NODE), explain_forward(fault, JUMP, NODE)):
        assert isinstance(error, (SlurmUnreachable, ConfigurationError))
        assert error.next_step
        assert type(fault).__name__ not in str(error).replace("Exception()", "") or not str(fault)
        assert len(str(error)) < 700


@pytest.mark.parametrize(
    "place", ["__init__", "start_client", "auth_publickey", "open_session", "get_remote_server_key"]
)
async def test_no_error_that_paramiko_raises_anywhere_gets_out(
    box: Box, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    for fault in RAISED[::4]:

        def broken(*_: object, fault: Exception = fault, **__: object) -> None:
            raise fault

        login = Login(replace(box.settings, command_timeout_s=0.3, connect_timeout_s=2.0))
        try:
            with monkeypatch.context() as patch:
                patch.setattr(paramiko.Transport, place, broken)
                with pytest.raises(GridError) as found:
                    await login.run(["true"])
                assert found.value.message
                with pytest.raises(GridError):
                    await (await login.open_line_channel(["true"])).read_line(1)
        finally:
            await login.close()


@asynccontextmanager
async def damaging(target: LoginSettings, seed: int) -> AsyncIterator[int]:
    """Forward to the sshd. From a random place on, some bytes that it sends are changed, repeated or left out."""
    chance = random.Random(seed)
    first, far = chance.choice([0, 20, 300, 1200, 2500, 4000]), chance.random() < 0.3

    async def forward(source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, damage: bool) -> None:
        seen = 0
        while data := await source.read(4096):
            if damage and seen + len(data) > first and chance.random() < 0.7:
                place = chance.randrange(len(data))
                data = chance.choice(
                    (
                        data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :],
                        data[:place] + chance.randbytes(chance.randrange(1, 40)) + data[place:],
                        data[:place],
                    )
                )
            seen += len(data)
            sink.write(data)
        sink.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if far:  # a server that speaks something else
            writer.write(chance.choice([b"", b"SSH-2.0-x\r\n", b"HTTP/1.1 400 Bad\r\n\r\n"]) + chance.randbytes(2000))
            writer.close()
            return
        there, back = await asyncio.open_connection(target.host, target.port)
        ways = forward(there, writer, damage=True), forward(reader, back, damage=False)
        await asyncio.gather(*ways, return_exceptions=True)
        writer.close()

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def end_of(login: Login) -> str | GridError:
    try:
        return (await login.run(["echo", "whole"])).text
    except (SlurmUnreachable, ConfigurationError) as error:
        return error


async def test_a_command_that_a_signal_ends_has_no_result(box: Box) -> None:
    login = Login(box.settings)
    try:
        with pytest.raises(SlurmUnreachable, match="ended without a status"):
            await login.run(["sh", "-c", "echo part; kill -KILL $$"])
        assert (await login.run(["echo", "whole"])).text == "whole\n"
    finally:
        await login.close()


@pytest.mark.situation("ssh", "a server sends damaged or foreign bytes", "each error names the host and a next step")
@pytest.mark.parametrize("seed", range(12))
async def test_a_damaged_conversation_ends_in_our_errors(box: Box, tmp_path: Path, seed: int) -> None:
    async with damaging(box.settings, seed) as port:
        known = tmp_path / "known"
        known.write_text(box.settings.known_hosts_file.read_text().replace(f"]:{box.settings.port} ", f"]:{port} "))
        away = replace(
            box.settings, port=port, known_hosts_file=known, connect_timeout_s=0.7, command_timeout_s=1.5,
            timeout_grace_s=1.0,
        )  # fmt: skip
        login = Login(away)
        try:
            ends = [await end_of(login) for _ in range(4)]
            assert all(end == "whole\n" or (isinstance(end, GridError) and end.next_step) for end in ends), ends
        finally:
            await login.close()
