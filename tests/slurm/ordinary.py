"""A supervisor that logs in without root, and the rights that an administrator grants it on the login node."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from pwd import getpwnam

from deepgrid.slurm.setup.hook_text import Identities, submit_hook, submit_wrapper
from deepgrid.slurm.ssh.login_settings import Become, CustomerAccounts, LoginSettings
from deployments.onemachine.daemons.ports import PortBook
from deployments.onemachine.daemons.probes import listens
from deployments.onemachine.slurm.slurm_files import put_hook
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
def sshd(box: Box, folder: Path, user: str, more: str = "", prefix: Sequence[str] = ()) -> Iterator[LoginSettings]:
    """Run a second sshd on the login node, by the command `prefix`. It admits only `user`, with a new key."""
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
        [*prefix, "/usr/sbin/sshd", "-D", "-f", str(folder / "sshd_config"), "-E", str(folder / "sshd.log")]
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
    """Add a sudoers rule that lets `user` run any command as these accounts."""
    file = Path("/etc/sudoers.d") / user
    file.write_text(f"{user} ALL=({','.join(accounts)}) NOPASSWD: ALL\n")
    file.chmod(0o440)
    try:
        subprocess.run(["visudo", "-c", "-q", "-f", str(file)], check=True)
        yield
    finally:
        file.unlink()


@contextmanager
def hook_for(box: Box, settings: LoginSettings) -> Iterator[None]:
    """Install the submit hook for a supervisor with these settings. Afterwards restore the previous hook."""
    hook = Path(box.site.environment(box.name)["SLURM_CONF"]).with_name("job_submit.lua")
    before = hook.read_text()
    user = getpwnam(settings.user)
    put_hook(hook, submit_hook(settings, Identities(settings.user, user.pw_uid, 0)))
    try:
        yield
    finally:
        put_hook(hook, before)


@contextmanager
def wrapper_for(box: Box, settings: LoginSettings) -> Iterator[LoginSettings]:
    """Install the submission wrapper, and a sudoers rule that lets the supervisor run it as root."""
    path = Path("/usr/local/sbin") / f"deepgrid-sbatch-{settings.user}"
    settings = replace(settings, submit_wrapper=str(path))
    conf = box.site.environment(box.name)["SLURM_CONF"]
    rule = Path("/etc/sudoers.d") / f"{settings.user}-wrapper"
    try:
        path.write_text(submit_wrapper(settings, settings.user, conf))
        path.chmod(0o755)
        rule.write_text(f"{settings.user} ALL=(root) NOPASSWD: {path}\n")
        rule.chmod(0o440)
        subprocess.run(["visudo", "-c", "-q", "-f", str(rule)], check=True)
        yield settings
    finally:
        path.unlink(missing_ok=True)
        rule.unlink(missing_ok=True)


@contextmanager
def operator(box: Box, user: str) -> Iterator[None]:
    """Give `user` Slurm's admin level Operator, which may change all jobs."""
    box.slurm("sacctmgr", "-i", "-Q", "add", "user", user, "account=root", "adminlevel=operator")
    try:
        yield
    finally:
        box.slurm("sacctmgr", "-i", "-Q", "delete", "user", user)


@contextmanager
def folders_of(box: Box, user: str) -> Iterator[None]:
    """Make this account the owner of the grid's folders and ledger. Afterwards root owns them again."""
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
def ordinary_supervisor(
    box: Box, folder: Path, accounts: CustomerAccounts, *, wrapper: bool = True
) -> Iterator[LoginSettings]:
    """Yield a supervisor without root, which can become each account in `accounts.table` through sudo.

    It submits their jobs through the wrapper. Without `wrapper`, each account submits its own jobs, by sudo.
    """
    with ExitStack() as stack:
        user = stack.enter_context(account())
        stack.enter_context(sudoers(user, list(accounts.table.values())))
        stack.enter_context(folders_of(box, user))
        settings = stack.enter_context(sshd(box, folder, user))
        settings = replace(settings, job_account=None, accounts=accounts, become=Become.SUDO)
        if wrapper:
            settings = stack.enter_context(wrapper_for(box, settings))
        stack.enter_context(hook_for(box, settings))
        yield settings
