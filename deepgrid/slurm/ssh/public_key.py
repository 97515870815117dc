"""The private key file of a login, and its public half as a line of sshd's authorized_keys."""

from __future__ import annotations

from pathlib import Path

import paramiko

from deepgrid.errors import ConfigurationError

# Commands only: no terminal, no forwarding of ports, agents or X11, no start-up file of ssh.
OPTIONS = "restrict"


def read_private_key(path: Path) -> paramiko.PKey:
    """The private key in a file that only its owner can read. Raises ConfigurationError, and OSError."""
    if path.stat().st_mode & 0o077:
        raise ConfigurationError(f"Others can read the key file {path}.", next_step=f"Run chmod 600 {path}.")
    try:
        return paramiko.PKey.from_path(path)
    except (paramiko.SSHException, ValueError, TypeError):
        raise ConfigurationError(f"{path} is not a private key without passphrase.") from None


def authorized_key(key_file: Path, name: str) -> str:
    """One line, with `name` as its comment. Raises ConfigurationError when the key file cannot be used."""
    try:
        key = read_private_key(key_file)
    except OSError as fault:
        raise ConfigurationError(f"{key_file} cannot be read: {fault.strerror}.") from None
    comment = "".join(name.split())
    return f"{OPTIONS} {key.get_name()} {key.get_base64()} deepgrid-{comment}"
