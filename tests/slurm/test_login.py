"""The SSH transport to a login node: host keys, timeouts, errors and reconnection."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest

from deepgrid.errors import ConfigurationError, SlurmError, SlurmUnreachable
from deepgrid.slurm.ssh.byte_channel import ByteChannel
from deepgrid.slurm.ssh.channel import OUTPUT_LIMIT_BYTES
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.ssh.login_settings import LoginSettings
from tests.slurm.support import Box
from tests.waiting import until


async def test_status_output_and_errors_are_separate(login: Login) -> None:
    done = await login.run(["sh", "-c", 'cat; echo "$1" >&2; exit 7', "sh", "it's * $HOME\n2nd"], stdin=b"\0in")
    assert (done.exit_status, done.stdout, done.stderr) == (7, b"\0in", b"it's * $HOME\n2nd\n")


async def test_large_input_and_output_pass(login: Login) -> None:
    body = os.urandom(3 * 2**20)
    assert (await login.run(["cat"], stdin=body)).stdout == body


async def test_a_command_that_ignores_its_input_is_no_fault(login: Login) -> None:
    assert (await login.run(["echo", "hi"], stdin=b"x" * 2**20)).stdout == b"hi\n"


async def test_a_command_that_takes_too_long_times_out(login: Login) -> None:
    with pytest.raises(SlurmUnreachable) as silence:
        await login.run(["sleep", "60"], timeout_s=0.5)
    assert silence.value.transient
    assert (await login.run(["echo", "still here"])).stdout == b"still here\n"


async def test_a_command_times_out_although_the_clock_is_set_back(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """paramiko measures timeouts by the wall clock. When it is set back by an hour, they would last an hour longer."""
    login = Login(replace(box.settings, timeout_grace_s=0.5))
    clock = time.time
    try:
        await login.run(["true"])  # connect first
        hung = asyncio.create_task(login.run(["sleep", "60"], timeout_s=10))
        await login.run(["true"])  # at this time the other command is waiting, in steps of a second
        monkeypatch.setattr(time, "time", lambda: clock() - 3600)
        with pytest.raises(SlurmUnreachable, match="in time"):
            await hung
        assert (await login.run(["echo", "again"])).stdout == b"again\n"
    finally:
        await login.close()


async def test_too_much_output_is_an_error(login: Login) -> None:
    with pytest.raises(SlurmError) as flood:
        await login.run(["head", "-c", str(OUTPUT_LIMIT_BYTES + 1), "/dev/zero"])
    assert not flood.value.transient


@pytest.fixture
def start_up_file(box: Box) -> Iterator[Path]:
    """A start-up file of the login's shell, removed after the test."""
    file = Path(box.settings.grid_root).parent / "login-home" / ".bashrc"
    yield file
    file.unlink()


async def test_bytes_pass_both_ways_in_pieces_of_any_size(login: Login) -> None:
    """Several SSH windows pass, in pieces that are read without a thread and in others."""
    channel = await login.open_byte_channel(["cat"])
    sent, received = os.urandom(6 * 2**20), bytearray()

    async def write() -> None:
        start = 0
        for size in (1, 100, 70_000) * 50:
            await channel.write(sent[start : start + size])
            start += size
        await channel.write(sent[start:])

    writing = asyncio.create_task(write())
    async with asyncio.timeout(60):
        while len(received) < len(sent):
            piece = await channel.read()
            assert piece, "the command ended"
            received += piece
        await writing
    assert received == sent
    reading = asyncio.create_task(channel.read())
    await asyncio.sleep(0)
    channel.close()
    async with asyncio.timeout(60):
        assert await reading == b""


async def test_a_command_that_does_not_read_holds_up_no_other_channel(login: Login) -> None:
    """One thread writes for all channels. It takes only what there is room for."""
    stuck = await login.open_byte_channel(["sleep", "600"])
    other = await login.open_byte_channel(["cat"])
    flooding = asyncio.create_task(_flood(stuck))
    await until(lambda: not stuck._channel.send_ready())
    async with asyncio.timeout(60):
        for number in range(100):
            await other.write(b"%03d" % number)
            assert await other.read() == b"%03d" % number
    assert not flooding.done()
    stuck.close()
    other.close()
    with pytest.raises(SlurmUnreachable):
        await flooding


async def _flood(channel: ByteChannel) -> None:
    while True:
        await channel.write(bytes(2**15))


@pytest.mark.parametrize("chatter", ["echo one; echo two", "printf 'no end of line'", "yes | head -c 300000"])
async def test_output_of_the_login_shell_before_the_command_is_dropped(
    login: Login, start_up_file: Path, chatter: str
) -> None:
    """A greeting without a line end once hid the first line of a queue, so its job seemed to be gone."""
    start_up_file.write_text(f"{chatter}\n{{ {chatter}; }} >&2\n")
    done = await login.run(["sh", "-c", "echo answer; echo complaint >&2; exit 3"])
    assert (done.exit_status, done.stdout, done.stderr) == (3, b"answer\n", b"complaint\n")
    channel = await login.open_line_channel(["sh", "-c", 'echo hello; read -r line; echo "$line"'])
    assert await channel.read_line(30) == "hello"
    assert await channel.ask("again", 30) == "again"
    channel.close()


@pytest.mark.parametrize("start_up", ["yes | head -c 20000000", "exit 0", "exec sleep 60"])
async def test_a_shell_that_never_runs_the_command_is_unreachable(
    login: Login, start_up_file: Path, start_up: str
) -> None:
    start_up_file.write_text(f"{start_up}\n")
    with pytest.raises(SlurmUnreachable) as silence:
        await login.run(["echo", "answer"], timeout_s=2)
    assert silence.value.transient


async def test_a_cancelled_caller_frees_its_channel(box: Box) -> None:
    login = Login(replace(box.settings, max_channels=1))
    try:
        await login.run(["true"])
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await login.run(["sleep", "60"])
        assert (await login.run(["echo", "free"], timeout_s=20)).stdout == b"free\n"
    finally:
        await login.close()


async def refusal(settings: LoginSettings) -> ConfigurationError:
    """Return the error of a first command. A command during the reconnection pause must repeat it."""
    login = Login(settings)
    try:
        with pytest.raises(ConfigurationError) as found:
            await login.run(["true"])
        with pytest.raises(ConfigurationError, match=re.escape(found.value.message)):
            await login.run(["true"])
    finally:
        await login.close()
    assert not found.value.transient
    return found.value


def new_key_file(folder: Path) -> Path:
    file = folder / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(file)], check=True)
    return file


async def test_a_changed_host_key_stops_the_work(box: Box, tmp_path: Path) -> None:
    other = new_key_file(tmp_path).with_suffix(".pub").read_text().split()
    known = tmp_path / "known_hosts"
    known.write_text(f"[{box.settings.host}]:{box.settings.port} {other[0]} {other[1]}\n")
    assert "another host key" in (await refusal(replace(box.settings, known_hosts_file=known))).message


async def test_an_unknown_host_key_stops_the_work(box: Box, tmp_path: Path) -> None:
    (tmp_path / "known_hosts").touch()
    error = await refusal(replace(box.settings, known_hosts_file=tmp_path / "known_hosts"))
    assert "is not in the known_hosts file" in error.message


@pytest.mark.parametrize("words", ["Authentication timeout.", "Authentication failed: transport shut down or saw EOF"])
async def test_a_connection_that_closes_during_authentication_is_no_refusal(
    login: Login, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise paramiko.AuthenticationException(words)

    with monkeypatch.context() as patch:
        patch.setattr(paramiko.Transport, "auth_publickey", broken)
        with pytest.raises(SlurmUnreachable, match="closed the connection during authentication"):
            await login.run(["true"])
    assert await first_answer(login) == b"after\n"


async def test_a_key_that_is_refused_missing_readable_or_invalid_is_an_error(box: Box, tmp_path: Path) -> None:
    key = new_key_file(tmp_path)
    assert "refuses the key" in (await refusal(replace(box.settings, key_file=key))).message
    assert "does not exist" in (await refusal(replace(box.settings, key_file=tmp_path / "none"))).message
    key.chmod(0o644)
    assert "Others can read" in (await refusal(replace(box.settings, key_file=key))).message
    key.chmod(0o600)
    key.write_text("no key")
    assert "is not a private key" in (await refusal(replace(box.settings, key_file=key))).message


async def test_a_login_node_that_stops_is_unreachable_until_it_is_back(
    box: Box, stop: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    login = Login(box.settings)
    try:
        assert (await login.run(["echo", "before"])).stdout == b"before\n"
        slow = asyncio.create_task(login.run(["sh", "-c", "echo begun; sleep 60"]))
        stop("sshd")
        with pytest.raises(SlurmUnreachable):
            await slow
        for _ in range(3):
            with pytest.raises(SlurmUnreachable):
                await login.run(["true"])
        box.start()
        assert await first_answer(login) == b"after\n"
        assert "Traceback" not in caplog.text
    finally:
        await login.close()


async def first_answer(login: Login) -> bytes:
    """Repeat a command until the login node answers. The login limits its own attempts to connect."""
    async with asyncio.timeout(60):
        while True:
            try:
                return (await login.run(["echo", "after"])).stdout
            except SlurmUnreachable:
                await asyncio.sleep(0.1)


async def test_errors_repeat_neither_arguments_nor_input(login: Login) -> None:
    with pytest.raises(SlurmUnreachable) as silence:
        await login.run(["sh", "-c", "sleep 60", "sh", "argument-secret"], stdin=b"input-secret", timeout_s=0.5)
    assert "secret" not in str(silence.value) + repr(silence.value)
