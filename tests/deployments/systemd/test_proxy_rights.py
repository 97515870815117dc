"""The rights that its unit leaves to nginx suffice."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from deepgrid.services.edge.proxy_file import ProxySettings, digest_in, proxy_file
from deployments.systemd.units import PROXY_RIGHTS
from tests.slurm.support import open_folder
from tests.waiting import wait_until

ACCOUNT = "daemon"  # which every Debian has
KEY_OWNER = "nobody"
SETPRIV = shutil.which("setpriv")

pytestmark = pytest.mark.skipif(os.getuid() != 0 or SETPRIV is None, reason="only root can give up rights of root")


@pytest.fixture
def settings() -> Iterator[ProxySettings]:
    """Settings with a port that only root can bind, and with another account's key."""
    with open_folder() as folder:
        state, key, certificate = (folder / name for name in ("state", "key.pem", "certificate.pem"))
        make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        subprocess.run(
            [*make, "-subj", "/CN=grid", "-keyout", key, "-out", certificate], check=True, capture_output=True
        )
        shutil.chown(key, KEY_OWNER)
        state.mkdir()
        shutil.chown(state, "root", ACCOUNT)
        state.chmod(0o710)
        yield ProxySettings(
            sockets=(folder,), listen=(f"127.0.0.1:{low_port()}",), certificate=certificate, key=key, state=state,
            account=ACCOUNT, workers="1",
        )  # fmt: skip


def low_port() -> int:
    """Return a free port below 1024."""
    for port in range(1023, 600, -1):
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port
    pytest.skip("no port below 1024 is free")


def test_nginx_starts_reloads_and_ends(settings: ProxySettings) -> None:
    file = settings.state.parent / "proxy.conf"
    file.write_text(proxy_file(settings))
    rights = ",".join(["-all", *(f"+{right.removeprefix('CAP_').lower()}" for right in PROXY_RIGHTS.split())])
    less = [str(SETPRIV), "--regid", ACCOUNT, "--clear-groups", "--no-new-privs", "--bounding-set", rights]
    with subprocess.Popen([*less, "nginx", "-e", "stderr", "-c", str(file)]) as master:
        try:
            wait_until(lambda: digest_in(answer(settings)) == digest_in(file.read_text()))
            before = workers(master.pid)
            assert all(Path(f"/proc/{pid}").owner() == ACCOUNT for pid in before)
            master.send_signal(1)  # SIGHUP: as after the renewal of a certificate
            wait_until(lambda: workers(master.pid) and not before & workers(master.pid))
        finally:
            master.terminate()
    assert master.returncode == 0


def answer(settings: ProxySettings) -> str:
    try:
        return httpx.get(f"https://{settings.listen[0]}/v1/proxy", verify=False, trust_env=False).text  # noqa: S501
    except httpx.HTTPError:
        return ""


def workers(master: int) -> set[str]:
    return set(Path(f"/proc/{master}/task/{master}/children").read_text().split())
