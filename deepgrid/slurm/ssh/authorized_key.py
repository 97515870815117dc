"""The public half of a login's key as a line of sshd's authorized_keys."""

from __future__ import annotations

from deepgrid.errors import ConfigurationError
from deepgrid.slurm.ssh.login import LoginSettings, read_key

# Commands only: no terminal, no forwarding of ports, agents or X11, no start-up file of ssh.
OPTIONS = "restrict"


def authorized_key(settings: LoginSettings, name: str) -> str:
    """One line, with `name` as its comment. Raises ConfigurationError when the key file cannot be used."""
    try:
        key = read_key(settings.key_file)
    except OSError as fault:
        raise ConfigurationError(f"{settings.key_file} cannot be read: {fault.strerror}.") from None
    comment = "".join(name.split())
    return f"{OPTIONS} {key.get_name()} {key.get_base64()} deepgrid-{comment}"
