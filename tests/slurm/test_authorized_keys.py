"""`dps provider authorized-keys`: its output, and a real sshd that uses it as AuthorizedKeysCommand."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest
from prefect.settings import PREFECT_API_URL, PREFECT_HOME, temporary_settings

from blocks import Grid, Provider, SlurmLogin, Wallet
from blocks.settings_cache import CachedSettings, cache_file
from deepgrid.errors import ConfigurationError
from deepgrid.slurm.ssh.login import authorized_key
from deepgrid.slurm.ssh.login_settings import LoginSettings
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deployments.onemachine.slurm import slurm_files
from tests.slurm.leaders import leading
from tests.slurm.ordinary import sshd
from tests.slurm.support import SMALL, Box, bash, ended, new_key

DPS = Path(sys.executable).with_name("dps")
NOBODY = "http://127.0.0.1:1/api"


def keep(settings: LoginSettings, home: Path) -> dict[str, str]:
    """Keep the settings of the cluster `unit` as its supervisor does: dps reads them without Prefect's server."""
    login = SlurmLogin(
        host=settings.host, port=settings.port, user=settings.user, key_file=settings.key_file,
        known_hosts_file=settings.known_hosts_file, grid_root=settings.grid_root, storage_root="/storage",
    )  # fmt: skip
    block = Provider(
        cluster="unit", grid=Grid(address_book=home / "grid.json"), login=login, state=home,
        wallet=Wallet(address="0x" + "ab" * 20, key_file=home / "wallet"), gpu_wei_per_minute="1",
        cpu_wei_per_minute="1", mem_wei_per_mb_minute="1",
    )  # fmt: skip
    with temporary_settings({PREFECT_HOME: home, PREFECT_API_URL: NOBODY}):
        file = cache_file("unit")
        file.parent.mkdir(parents=True)
        file.write_text(CachedSettings(prefect=NOBODY, settings=block.settings()).model_dump_json())
    return {"PREFECT_HOME": str(home), "PREFECT_API_URL": NOBODY}


def dps(env: dict[str, str], *args: str) -> subprocess.CompletedProcess[str]:
    command = [DPS, "provider", "authorized-keys", "unit", *args]
    return subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(state_folder: Path) -> Path:
    return slurm_files.make_folder(state_folder / f"keys-{new_key().job_id}", 0o755)


@pytest.fixture
def asking(box: Box, folder: Path) -> Iterator[LoginSettings]:
    """A login node that accepts only keys from `dps provider authorized-keys`."""
    env = " ".join(f"{name}={value}" for name, value in {"PREFECT_HOME": folder, "PREFECT_API_URL": NOBODY}.items())
    command = f"/usr/bin/env {env} {DPS} provider authorized-keys unit --for %u"
    more = f"AuthorizedKeysCommand {command}\nAuthorizedKeysCommandUser root"
    with sshd(box, folder, box.settings.user, more) as settings:
        (folder / "authorized_keys").unlink()
        keep(settings, folder)
        yield replace(settings, connect_timeout_s=60.0)


def test_the_line_is_the_public_key_restricted_to_commands(box: Box) -> None:
    kind, key = box.settings.key_file.with_suffix(".pub").read_text().split()[:2]
    assert authorized_key(box.settings.key_file, "my\n cluster") == f"restrict {kind} {key} deepgrid-mycluster"


def test_a_key_that_cannot_be_used_is_one_sentence(box: Box, tmp_path: Path) -> None:
    key = tmp_path / "key"
    settings = replace(box.settings, key_file=key)
    with pytest.raises(ConfigurationError, match=r"does not exist"):
        authorized_key(settings.key_file, "unit")
    key.write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n")
    key.chmod(0o644)
    with pytest.raises(ConfigurationError, match="Others can read"):
        authorized_key(settings.key_file, "unit")
    key.chmod(0o600)
    with pytest.raises(ConfigurationError, match="is not a private key") as broken:
        authorized_key(settings.key_file, "unit")
    assert "c2VjcmV0" not in f"{broken.value!s}{broken.value!r}"


@pytest.mark.long  # each login starts dps, which waits for Prefect first
def test_it_prints_one_line_for_the_supervisors_account_only(box: Box, tmp_path: Path) -> None:
    env = keep(box.settings, tmp_path)
    told, others = dps(env), dps(env, "--for", "somebody-else")
    assert (told.returncode, told.stdout) == (0, authorized_key(box.settings.key_file, "unit") + "\n")
    assert (others.returncode, others.stdout) == (0, "")


@pytest.mark.deep
@pytest.mark.skipif(os.getuid() != 0, reason="sshd runs an AuthorizedKeysCommand for root only")
async def test_a_supervisor_works_through_an_sshd_with_an_authorized_keys_command(
    asking: LoginSettings, monitor: SlurmMonitor
) -> None:
    """Commands, submissions and the leader's line channel work. Terminals and forwarded ports do not."""
    key = new_key()
    async with leading(asking, f"restricted-{key.job_id}") as (one, _):
        assert (await one.login.run(["cat"], stdin=b"\0" * 100_000)).stdout == b"\0" * 100_000
        await one.cluster.submit(key, bash("echo through"), SMALL)
        await ended(monitor, key)
        assert await one.cluster.read_output({key: 0}) == {key: b"through\n"}
    with connected(asking) as client:
        transport = client.get_transport()
        assert transport is not None
        with transport.open_session() as channel, pytest.raises(paramiko.SSHException):
            channel.get_pty()
        with pytest.raises(paramiko.SSHException):
            transport.open_channel("direct-tcpip", ("127.0.0.1", asking.port), ("127.0.0.1", 1))


def connected(settings: LoginSettings) -> paramiko.SSHClient:
    client = paramiko.SSHClient()
    client.load_host_keys(str(settings.known_hosts_file))
    client.connect(
        settings.host, settings.port, settings.user, key_filename=str(settings.key_file), auth_timeout=60,
        allow_agent=False, look_for_keys=False,
    )  # fmt: skip
    return client
