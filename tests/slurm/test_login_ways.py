"""Ways to a login node, by real sshds: jump hosts, several nodes, rotated keys, firewalls."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.errors import ConfigurationError, GridError, SlurmUnreachable
from deepgrid.lifecycle.job import JobKey
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.ssh.login_settings import Endpoint, LoginSettings
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deployments.onemachine.slurm.slurm_steps import kill_descendants
from tests.chaos.proxy import Down, Hang, Pass, Proxy
from tests.slurm.leaders import leading
from tests.slurm.people import account
from tests.slurm.sshds import Site, pool
from tests.slurm.support import SMALL, bash, ended


def through(node: LoginSettings, jump: LoginSettings) -> LoginSettings:
    end = Endpoint(jump.host, jump.port, jump.user, jump.key_file, jump.known_hosts_file, role="jump host")
    return replace(node, jump=end)


@pytest.mark.situation(
    "ssh",
    "the login node is behind a jump host with its own account and key",
    "jobs run",
)
async def test_a_job_runs_through_a_jump_host(site: Site, monitor: SlurmMonitor, key: JobKey) -> None:
    """The jump host has its own account, key and known_hosts file."""
    with account() as user:
        settings = through(site("node"), site("jump", user=user))
        async with leading(settings, f"jump-{key.job_id}") as (one, _):
            await one.cluster.submit(key, bash("echo through"), SMALL)
            await ended(monitor, key)
            assert await one.cluster.read_output({key: 0}) == {key: b"through\n"}


@pytest.mark.situation(
    "ssh",
    "a jump host that forbids forwarding, or is down",
    "the error names the jump host and the setting",
)
async def test_each_part_of_the_way_through_a_jump_host_has_its_own_error(site: Site, folder: Path) -> None:
    node, jump = site("node"), site("jump")
    closed = site("closed", "AllowTcpForwarding no")
    (folder / "empty").touch()
    gone, unknown = replace(jump, port=9), replace(jump, known_hosts_file=folder / "empty")
    ways: list[tuple[LoginSettings, type[GridError], str]] = [
        (through(node, closed), ConfigurationError, "jump host 127.0.0.1:[0-9]+ does not forward connections to"),
        (through(replace(node, port=9), jump), SlurmUnreachable, "jump host .* cannot reach the login node .*:9"),
        (through(node, gone), SlurmUnreachable, "jump host 127.0.0.1:9 cannot be reached: nothing listens"),
        (through(node, replace(jump, key_file=node.key_file)), ConfigurationError, "jump host .* refuses the key"),
        (through(node, unknown), ConfigurationError, "not in the known_hosts"),
        (through(replace(node, key_file=jump.key_file), jump), ConfigurationError, "login node .* refuses the key"),
    ]
    for settings, kind, words in ways:
        login = Login(settings)
        try:
            with pytest.raises(kind, match=words) as found:
                await login.run(["true"])
            assert found.value.next_step
        finally:
            await login.close()


@pytest.mark.situation(
    "ssh",
    "a jump host dies and comes back",
    "commands continue",
)
async def test_a_jump_host_that_dies_is_noticed_and_used_again(site: Site) -> None:
    node, jump = site("node"), site("jump")
    proxy = Proxy(jump.port)
    proxy.start()
    known = jump.known_hosts_file.read_text().replace(f"]:{jump.port} ", f"]:{proxy.port} ")
    jump.known_hosts_file.write_text(known)
    login = Login(through(node, replace(jump, port=proxy.port)))
    try:
        assert (await login.run(["echo", "before"])).text == "before\n"
        proxy.set(Down())
        with pytest.raises(SlurmUnreachable):
            await login.run(["true"])
        proxy.set(Pass())
        assert await answer(login) == "after\n"
    finally:
        await login.close()
        proxy.close()


async def answer(login: Login) -> str:
    """Repeat a command until the login node answers."""
    async with asyncio.timeout(60):
        while True:
            try:
                return (await login.run(["echo", "after"])).text
            except SlurmUnreachable:
                await asyncio.sleep(0.1)


def stop_sshd(folder: Path) -> None:
    """End the sshd of this folder with its sessions."""
    found = subprocess.run(["pgrep", "-f", f"{folder}/sshd_config"], capture_output=True, text=True, check=True)
    for process in map(int, found.stdout.split()):
        kill_descendants(process)
        os.kill(process, signal.SIGKILL)


@pytest.mark.situation(
    "ssh",
    "one of several login nodes is down",
    "another one is used, and the log says why",
)
async def test_another_login_node_serves_while_one_is_down(
    site: Site, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Commands continue at the next node, even when the one in use breaks."""
    first = site("first")
    second = site("second", f"ListenAddress 127.0.0.2:{first.port}")
    shutil.copy(folder / "first" / "authorized_keys", folder / "second" / "authorized_keys")
    settings = pool(first, first, second, port=first.port, hosts=("127.0.0.3", "127.0.0.1", "127.0.0.2"))
    login = Login(settings)
    try:
        assert (await login.run(["echo", "one"])).text == "one\n"
        assert login.node.host == "127.0.0.1"
        assert "using the login node 127.0.0.1: The login node 127.0.0.3" in caplog.text
        stop_sshd(folder / "first")
        assert await answer(login) == "after\n"
        assert login.node.host == "127.0.0.2"
        stop_sshd(folder / "second")
        with pytest.raises(SlurmUnreachable) as found:
            await login.run(["true"])
        assert "login node 127.0.0." in found.value.message and found.value.next_step
    finally:
        await login.close()


@pytest.mark.situation(
    "ssh",
    "the host key is rotated",
    "the new line of known_hosts is read at the next connection",
)
async def test_a_rotated_host_key_is_read_at_the_next_connection(site: Site) -> None:
    """The administrator adds the new key to the file before the rotation. Nothing has to be restarted."""
    old, new = site("old"), site("new")
    shown, known = new.known_hosts_file.read_text(), new.known_hosts_file
    former = shown.replace(shown.split()[2], old.known_hosts_file.read_text().split()[2])
    known.write_text(former)
    login = Login(new)
    try:
        with pytest.raises(ConfigurationError, match="shows another host key"):
            await login.run(["true"])
        known.write_text(former + shown)
        await asyncio.sleep(1)  # the pause before the next attempt
        assert (await login.run(["echo", "rotated"])).text == "rotated\n"
    finally:
        await login.close()


@pytest.mark.situation(
    "ssh",
    "a firewall drops a connection without notice",
    "it is noticed within a bound, and opened again",
)
async def test_a_connection_that_a_firewall_drops_is_noticed(site: Site) -> None:
    """Nothing is answered and nothing is closed. The kernel gives up within the bound, without any command."""
    settings = site("behind")
    proxy = Proxy(settings.port)
    proxy.start()
    known = settings.known_hosts_file.read_text()
    settings.known_hosts_file.write_text(known.replace(f"]:{settings.port} ", f"]:{proxy.port} "))
    login = Login(replace(settings, port=proxy.port, connect_timeout_s=1.0))
    try:
        await login.run(["true"])
        proxy.set(Hang())
        began = time.monotonic()
        with pytest.raises(SlurmUnreachable):
            await login.run(["true"])
        assert time.monotonic() - began < 20
        proxy.set(Pass())
        assert await answer(login) == "after\n"
    finally:
        await login.close()
        proxy.close()
