"""A supervisor whose account on the login node is an ordinary one, with what its site grants it."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from deepgrid.slurm.accounts import Become, CustomerAccounts
from deepgrid.slurm.login import LoginSettings
from deployments.onemachine import slurm_files
from deployments.onemachine.ports import PortBook
from deployments.onemachine.probes import listens
from tests.slurm.people import account
from tests.slurm.support import WAIT_S, Box

SSHD_CONFIG = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
PidFile none
AuthorizedKeysFile {folder}/authorized_keys
AllowUsers {user}
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
SetEnv SLURM_CONF={slurm_conf}
{more}
"""


@contextmanager
def sshd(box: Box, folder: Path, user: str, more: str = "") -> Iterator[LoginSettings]:
    """A second sshd of the login node, which lets in `user` only, by a key of its own."""
    for name in ("host", "client"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    shutil.copy(folder / "client.pub", folder / "authorized_keys")
    port = PortBook(folder / "ports.json").port("sshd")
    kind, key = (folder / "host.pub").read_text().split()[:2]
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {kind} {key}\n")
    slurm_conf = box.site.environment(box.name)["SLURM_CONF"]
    config = SSHD_CONFIG.format(port=port, folder=folder, user=user, slurm_conf=slurm_conf, more=more)
    (folder / "sshd_config").write_text(config)
    process = subprocess.Popen(
        ["/usr/sbin/sshd", "-D", "-f", str(folder / "sshd_config"), "-E", str(folder / "sshd.log")]
    )
    try:
        _wait_for(port)
        yield replace(
            box.settings, port=port, user=user, key_file=folder / "client", known_hosts_file=folder / "known_hosts"
        )
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + WAIT_S
    while not listens(port):
        assert time.monotonic() < deadline, "sshd does not listen"
        time.sleep(0.05)


@contextmanager
def sudoers(user: str, accounts: Sequence[str]) -> Iterator[None]:
    """The rule with which a site lets `user` act as the accounts of its customers."""
    file = Path("/etc/sudoers.d") / user
    file.write_text(f"{user} ALL=({','.join(accounts)}) NOPASSWD: ALL\n")
    file.chmod(0o440)
    try:
        subprocess.run(["visudo", "-c", "-q", "-f", str(file)], check=True)
        yield
    finally:
        file.unlink()


@contextmanager
def submits_by_sudo(box: Box) -> Iterator[None]:
    """The cluster's identity hook as for a supervisor that submits in its customers' accounts."""
    hook = Path(box.site.environment(box.name)["SLURM_CONF"]).with_name("job_submit.lua")
    before = hook.read_text()
    slurm_files.write_hook("job_submit.lua", hook, supervisor="nil")
    try:
        yield
    finally:
        hook.write_text(before)


@contextmanager
def operator(box: Box, user: str) -> Iterator[None]:
    """`user` may change everybody's jobs."""
    box.slurm("sacctmgr", "-i", "-Q", "add", "user", user, "account=root", "adminlevel=operator")
    try:
        yield
    finally:
        box.slurm("sacctmgr", "-i", "-Q", "delete", "user", user)


@contextmanager
def folders_of(box: Box, user: str) -> Iterator[None]:
    """The grid's folders are this supervisor's."""
    root = Path(box.settings.grid_root)
    places = root, root / "jobs", root / "spool"
    ledger = root / "ledger"
    ledger.touch(mode=0o600)
    for place in (*places, ledger):
        shutil.chown(place, user, user)
    try:
        yield
    finally:
        for place in (*places, ledger):
            shutil.chown(place, "root", "root")


@contextmanager
def ordinary_supervisor(box: Box, folder: Path, accounts: CustomerAccounts) -> Iterator[LoginSettings]:
    """A login account that may become those of the table, and nothing else."""
    with ExitStack() as stack:
        user = stack.enter_context(account())
        stack.enter_context(sudoers(user, list(accounts.table.values())))
        stack.enter_context(folders_of(box, user))
        stack.enter_context(submits_by_sudo(box))
        settings = stack.enter_context(sshd(box, folder, user))
        yield replace(settings, job_account=None, accounts=accounts, become=Become.SUDO)
