"""Writes configuration, folders and keys of the one-machine Slurm clusters under the state folder."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
from pathlib import Path

from deepgrid.errors import ConfigurationError
from deepgrid.files.private_files import create_file
from deepgrid.slurm.setup.hook_text import Identities, completion_hook, submit_hook
from deepgrid.slurm.ssh.login_settings import LoginSettings
from deployments.onemachine.daemons.grid_files import write_text
from deployments.onemachine.daemons.processes import options


def write_hook(name: str, conf_folder: Path, login: LoginSettings) -> None:
    """Write a hook of `deepgrid.slurm` next to slurm.conf. Our account is the supervisor and the SlurmUser."""
    who = Identities(own_account(), os.getuid(), os.getuid())
    text = submit_hook(login, who) if name == "job_submit.lua" else completion_hook(f"{login.grid_root}/spool")
    put_hook(conf_folder / name, text)


def put_hook(file: Path, text: str) -> None:
    """Set the hook's time. Slurm reads a hook again only if it changed in a later second than the one that it knows."""
    earliest = file.stat().st_mtime + 1 if file.exists() else 0
    write_text(file, text, 0o644)
    changed_at = max(file.stat().st_mtime, earliest)
    os.utime(file, (changed_at, changed_at))


def make_folder(path: Path, mode: int) -> Path:
    """Create `path` with exactly `mode`, for any umask."""
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(mode)
    return path


def write_keys(folder: Path, port: int) -> None:
    """Create the host key, the supervisor's client key and the known_hosts file. Existing ones are kept."""
    make_folder(folder, 0o700)
    for name in ("host_ed25519", "client_ed25519"):
        if not (folder / name).exists():
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "deepgrid", "-f", str(folder / name)]
            subprocess.run(command, check=True, capture_output=True)
    kind, key, *_ = (folder / "host_ed25519.pub").read_text().split()
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {kind} {key}\n")
    shutil.copy(folder / "client_ed25519.pub", folder / "authorized_keys")


def write_munge_key(path: Path) -> None:
    """Write a random key at the first call."""
    if not path.exists():
        create_file(path, secrets.token_bytes(1024))


def make_database(folder: Path, temporary: Path, log: Path) -> None:
    """Create a MariaDB data folder. Its only administrator is our account, by socket, without password.

    `temporary` is for temporary files: two servers in the same folder could take each other's files.
    """
    make_folder(temporary, 0o700)
    if (folder / "mysql").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)  # incomplete after an interrupted start
    make_folder(folder, 0o700)
    command = ["mariadb-install-db", "--no-defaults", "--skip-test-db", *options(datadir=folder, user=own_account())]
    command += options(auth_root_authentication_method="socket", auth_root_socket_user=own_account())
    command += options(innodb_log_file_size="16M", innodb_buffer_pool_size="32M")
    with open(log, "ab") as output:
        env = {**os.environ, "TMPDIR": str(temporary)}
        done = subprocess.run(command, stdout=output, stderr=output, env=env, check=False)
    if done.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        raise ConfigurationError("MariaDB's data folder could not be created.", next_step=f"Read {log}.")


def own_account() -> str:
    """Return the name of our account, independent of the environment."""
    return pwd.getpwuid(os.getuid()).pw_name


def root_is_locked() -> bool:
    """Return whether our password field begins with `!`. Without PAM, sshd treats such an account as locked."""
    try:
        lines = Path("/etc/shadow").read_text().splitlines()
    except OSError:
        return False
    return any(line.startswith(f"{own_account()}:!") for line in lines)


def short_host_name() -> str:
    """Return the host name that Slurm compares with `SlurmctldHost`."""
    return socket.gethostname().split(".")[0]
