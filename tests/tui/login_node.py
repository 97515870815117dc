"""A login node on loopback: a separate sshd with its own keys, and the processes that its logins have started."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deployments.onemachine.daemons.ports import PortBook
from deployments.onemachine.daemons.probes import listens
from deployments.onemachine.slurm.slurm_files import own_account, root_is_locked, write_keys

WITHIN_S = 120.0
PROMPT = "login-node:"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")

SSHD_CONFIG = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/ssh/host_ed25519
PidFile none
AuthorizedKeysFile {folder}/ssh/authorized_keys
AllowUsers {user}
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UsePAM {pam}
StrictModes no
PrintMotd no
PrintLastLog no
UseDNS no
ForceCommand exec bash --noprofile --rcfile {folder}/bashrc -i
"""


@dataclass(frozen=True)
class Process:
    """A process of this machine."""

    id: int

    @property
    def cpu_s(self) -> float:
        """Return the processor time that it has used, in seconds."""
        fields = Path(f"/proc/{self.id}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S

    @property
    def waited_s(self) -> float:
        """Return the seconds in which its main thread was ready to run, but other processes had the processors."""
        return int(Path(f"/proc/{self.id}/schedstat").read_text().split()[1]) / 1e9


@dataclass(frozen=True)
class LoginNode:
    """A running sshd. A login gives a shell in `home` with the variables of the customer, including `mark`."""

    folder: Path
    port: int
    mark: bytes

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def ssh(self) -> list[str]:
        """The command that logs in."""
        options = {
            "IdentityFile": self.folder / "ssh" / "client_ed25519", "IdentitiesOnly": "yes",
            "UserKnownHostsFile": self.folder / "ssh" / "known_hosts", "StrictHostKeyChecking": "yes",
            "BatchMode": "yes", "Port": self.port,
        }  # fmt: skip
        given = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        return ["ssh", "-F", "none", "-e", "none", *given, f"{own_account()}@127.0.0.1"]

    def processes(self) -> list[Process]:
        """Return the `dps` processes that logins have started."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                variables = (folder / "environ").read_bytes().split(b"\0")
                command = (folder / "cmdline").read_bytes()
            except OSError:  # ended, or another account's
                continue
            if self.mark in variables and b"dps" in command:
                found.append(Process(int(folder.name)))
        return found

    def until_none_is_left(self) -> None:
        """Wait until no `dps` process is left."""
        deadline = time.monotonic() + WITHIN_S
        while left := self.processes():
            assert time.monotonic() < deadline, f"{left} do not end"
            time.sleep(0.05)


@contextmanager
def login_node(folder: Path, variables: Mapping[str, str], mark: str) -> Iterator[LoginNode]:
    """Run an sshd. Its logins have these variables. No other program uses the value of `mark`."""
    port = PortBook(folder / "ports.json").port("sshd")
    write_keys(folder / "ssh", port)
    (folder / "home").mkdir()
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    exported = {"PATH": path, "HOME": str(folder / "home"), "PS1": f"{PROMPT} ", **variables}
    lines = [f"export {name}='{value}'" for name, value in exported.items()]
    (folder / "bashrc").write_text("\n".join([*lines, "cd", "unset NO_COLOR COLORTERM", ""]))
    pam = "yes" if os.getuid() == 0 and root_is_locked() else "no"
    config = SSHD_CONFIG.format(port=port, folder=folder, user=own_account(), pam=pam)
    (folder / "sshd_config").write_text(config)
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd requires it
    log = folder / "sshd.log"
    process = subprocess.Popen(["/usr/sbin/sshd", "-D", "-f", str(folder / "sshd_config"), "-E", str(log)])
    try:
        deadline = time.monotonic() + WITHIN_S
        while not listens(port):
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        node = LoginNode(folder, port, f"{mark}={variables[mark]}".encode())
        yield node
        node.until_none_is_left()
    finally:
        process.terminate()
        process.wait(WITHIN_S)
