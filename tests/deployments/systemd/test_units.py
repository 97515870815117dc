"""The systemd units of each role: systemd accepts them, they are hardened, and writing them twice changes nothing."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from deployments.prefect_settings import SERVER

UNPACKED = Path(__file__).parents[3] / ".grid" / "debian"
DPS = str(Path(sys.executable).with_name("dps"))
PROXY = "deepgrid-proxy"  # its master process is root's, with few rights
ROLES = [("provider", "gamma"), ("operator", "grid")]
HARDENED = (
    "NoNewPrivileges=yes", "ProtectSystem=strict", "PrivateTmp=yes", "AmbientCapabilities=\n", "UMask=0077",
    "RestrictNamespaces=yes", "TimeoutStopSec=15", "Restart=on-failure",
)  # fmt: skip


def units(role: str, name: str, folder: Path) -> list[str]:
    """Write the files of a role. Returns what the command says."""
    done = subprocess.run(
        [DPS, role, "units", name, "--write", str(folder)], capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(("role", "name"), ROLES)
def test_units_are_hardened_and_secrets_are_private(role: str, name: str, tmp_path: Path) -> None:
    units(role, name, tmp_path)
    services = sorted((tmp_path / "etc/systemd/system").glob("*.service"))
    assert len(services) == {"provider": 3, "operator": 5}[role]
    for unit in services:
        text = unit.read_text()
        assert not [line for line in HARDENED if line not in text]
        assert "AUTH_STRING" not in text
        if unit.stem == PROXY:
            continue
        assert "User=root" not in text and "CapabilityBoundingSet=\n" in text
        file = tmp_path / "etc/deepgrid" / f"{unit.stem.removeprefix('deepgrid-')}.env"
        assert f"EnvironmentFile=/etc/deepgrid/{file.name}\n" in text
        assert stat.S_IMODE(file.stat().st_mode) & 0o037 == 0
    accounts = (tmp_path / "etc/sysusers.d").glob("*").__next__().read_text()
    for unit in services:
        group = next(line for line in unit.read_text().splitlines() if line.startswith("Group="))
        assert f"u {group.removeprefix('Group=')} " in accounts


@pytest.mark.parametrize(("role", "name"), ROLES)
def test_each_process_has_a_folder_that_it_may_write(role: str, name: str, tmp_path: Path) -> None:
    """The folder exists before the first start, so that the key can be put there."""
    units(role, name, tmp_path)
    folders = (tmp_path / "etc/tmpfiles.d").glob("*").__next__().read_text()
    for unit in (tmp_path / "etc/systemd/system").glob("*.service"):
        text = unit.read_text()
        user = next(line for line in text.splitlines() if line.startswith("User=")).removeprefix("User=")
        state = f"deepgrid/{unit.stem.removeprefix('deepgrid-')}"
        if unit.stem != PROXY:
            assert f"d /var/lib/{state} 0700 {user} {user} -\n" in folders
        assert f"StateDirectory={state}\n" in text


def test_the_proxy_has_few_rights_of_root_and_its_account_opens_the_sockets(tmp_path: Path) -> None:
    units(*ROLES[1], tmp_path)
    found = tmp_path / "etc/systemd/system"
    proxy, services = ((found / f"{name}.service").read_text() for name in (PROXY, "deepgrid-services"))
    rights = re.search(r"^CapabilityBoundingSet=(.+)$", proxy, re.MULTILINE)
    assert rights is not None
    assert not {"CAP_SYS_ADMIN", "CAP_DAC_OVERRIDE", "CAP_SYS_PTRACE", "CAP_FOWNER"} & set(rights[1].split())
    assert f"Group={PROXY}\n" in proxy and f"SupplementaryGroups={PROXY}\n" in services
    assert (
        "d /var/lib/deepgrid/proxy 0710 root deepgrid-proxy -\n"
        in (tmp_path / "etc/tmpfiles.d/deepgrid-operator.conf").read_text()
    )
    settings = (tmp_path / "etc/deepgrid/services.env").read_text()
    assert f"DEEPGRID_SERVICES_SOCKET_GROUP={PROXY}\n" in settings
    assert "RuntimeDirectory=deepgrid-services\n" in services and "SOCKETS=/run/deepgrid-services\n" in settings


def test_the_server_of_prefect_keeps_its_pages_in_its_folder(tmp_path: Path) -> None:
    units(*ROLES[0], tmp_path)
    text = (tmp_path / "etc/systemd/system/deepgrid-prefect.service").read_text()
    for setting in (
        "PREFECT_UI_STATIC_DIRECTORY=/var/lib/deepgrid/prefect/ui",
        *(f"{k}={v}" for k, v in SERVER.items()),
    ):
        assert f"Environment={setting}\n" in text


@pytest.mark.skipif(os.getuid() != 0, reason="changes to another account")
def test_a_command_gets_account_settings_and_home_of_a_process(tmp_path: Path) -> None:
    units(*ROLES[1], tmp_path)
    unit = tmp_path / "etc/systemd/system/deepgrid-operator.service"
    unit.write_text(unit.read_text().replace("User=deepgrid-operator", "User=daemon"))
    script = tmp_path / "usr/local/sbin/with_rights_of"
    assert stat.S_IMODE(script.stat().st_mode) == 0o755
    here = script.read_text().replace("/etc/", f"{tmp_path}/etc/").replace('HOME="/var', f'HOME="{tmp_path}/var')
    with (tmp_path / "etc/deepgrid/operator.env").open("a") as file:
        file.write('# a note\nODD=sqlite:///x?a=1&b=$HOME $(id)\nQUOTED="two words"\nLAST=x y')
    shown = 'id -un; pwd; echo $HOME $DPS_KEY_FILE $DO_NOT_TRACK; echo "$ODD|$QUOTED|$LAST"; command -v dps'
    done = subprocess.run(
        ["sh", "-c", here, "sh", "operator", "sh", "-c", shown], capture_output=True, text=True, check=True
    )
    account, folder, values, odd, _dps = done.stdout.splitlines()
    assert (account, folder) == ("daemon", "/")
    assert odd == "sqlite:///x?a=1&b=$HOME $(id)|two words|x y", "no shell reads the values, as systemd does not"
    assert values == f"{tmp_path}/var/lib/deepgrid/operator /var/lib/deepgrid/operator/operator.key 1"


@pytest.mark.parametrize(("role", "name"), ROLES)
def test_all_processes_get_one_new_login_for_prefect(role: str, name: str, tmp_path: Path) -> None:
    units(role, name, tmp_path)
    (server,) = logins(tmp_path, "PREFECT_SERVER_API_AUTH_STRING")
    assert re.fullmatch(r"deepgrid:[\w-]{32}", server)
    assert set(logins(tmp_path, "PREFECT_API_AUTH_STRING")) == {server}
    (tmp_path / "etc/deepgrid/worker.env").unlink()
    units(role, name, tmp_path)
    assert set(logins(tmp_path, "PREFECT_API_AUTH_STRING")) == {server}, "a new file takes the login that is there"
    printed = subprocess.run([DPS, role, "units", name], capture_output=True, text=True, check=True).stdout
    assert "AUTH_STRING=\n" in printed and "AUTH_STRING=d" not in printed


def logins(folder: Path, variable: str) -> list[str]:
    """Return the values of a variable in all environment files."""
    lines = [line for file in (folder / "etc/deepgrid").iterdir() for line in file.read_text().splitlines()]
    return [line.removeprefix(f"{variable}=") for line in lines if line.startswith(f"{variable}=")]


def test_what_a_person_wrote_stays(tmp_path: Path) -> None:
    units(*ROLES[0], tmp_path)
    secrets = tmp_path / "etc/deepgrid/prefect.env"
    secrets.write_text("PREFECT_SERVER_API_AUTH_STRING=me:mine\n")
    unit = tmp_path / "etc/systemd/system/deepgrid-worker.service"
    unit.write_text("old")
    said = units(*ROLES[0], tmp_path)
    assert secrets.read_text() == "PREFECT_SERVER_API_AUTH_STRING=me:mine\n"
    assert [line for line in said if not line.startswith("kept ")] == [f"changed  {unit}"]


@pytest.mark.long
@pytest.mark.parametrize(("role", "name"), ROLES)
def test_systemd_accepts_the_units(role: str, name: str, tmp_path: Path) -> None:
    """`systemd-analyze verify` reads units, accounts and programs. It starts nothing, and needs no running systemd."""
    units(role, name, tmp_path)
    found = sorted(map(str, (tmp_path / "etc/systemd/system").iterdir()))
    program, environment = systemd_analyze()
    done = subprocess.run(
        [program, "verify", "--man=no", *found], env=environment, capture_output=True, text=True, check=False,
        timeout=300,
    )  # fmt: skip
    complaints = [line for line in done.stderr.splitlines() if "deepgrid" in line]
    assert (done.returncode, complaints) == (0, []), done.stderr


def systemd_analyze() -> tuple[str, dict[str, str]]:
    """Return the program and its environment: Debian's, which `./run test` unpacks, or this machine's."""
    unpacked = next(iter(UNPACKED.glob("usr/bin/systemd-analyze")), None)
    if unpacked is not None:
        (libraries,) = UNPACKED.glob("usr/lib/*/systemd")
        units_of_debian = UNPACKED / "lib/systemd/system"
        return str(unpacked), {"LD_LIBRARY_PATH": str(libraries), "SYSTEMD_UNIT_PATH": str(units_of_debian)}
    if installed := shutil.which("systemd-analyze"):
        return installed, dict(os.environ)
    pytest.skip("there is no systemd-analyze; `./run test` fetches it from a mirror of Debian")
