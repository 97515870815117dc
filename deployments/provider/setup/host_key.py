"""The host key of a login node: fetched to be shown to a person, and stored once the person trusts it."""

from __future__ import annotations

import asyncio
import socket

import paramiko

from deepgrid.errors import SlurmUnreachable
from deepgrid.slurm.ssh.login import LoginSettings

USUAL_PORT = 22


def is_known(settings: LoginSettings) -> bool:
    """Whether the known_hosts file names this login node."""
    known = paramiko.HostKeys()
    try:
        known.load(str(settings.known_hosts_file))
    except FileNotFoundError:
        return False
    return known.lookup(_name(settings)) is not None


async def fetch(settings: LoginSettings) -> paramiko.PKey:
    """The key that the login node shows now. Nothing says yet that it is the right one. Raises SlurmUnreachable."""
    return await asyncio.to_thread(_fetch, settings)


def trust(settings: LoginSettings, key: paramiko.PKey) -> None:
    """Add the key to the known_hosts file."""
    settings.known_hosts_file.parent.mkdir(parents=True, exist_ok=True)
    with settings.known_hosts_file.open("a") as file:
        file.write(f"{_name(settings)} {key.get_name()} {key.get_base64()}\n")


def _fetch(settings: LoginSettings) -> paramiko.PKey:
    limit = settings.connect_timeout_s
    try:
        with socket.create_connection((settings.host, settings.port), limit) as line:
            transport = paramiko.Transport(line)
            try:
                transport.start_client(timeout=limit)
                return transport.get_remote_server_key()
            finally:
                transport.close()
    except (OSError, EOFError, paramiko.SSHException):
        raise SlurmUnreachable(f"The login node {settings.host}:{settings.port} cannot be reached.") from None


def _name(settings: LoginSettings) -> str:
    return settings.host if settings.port == USUAL_PORT else f"[{settings.host}]:{settings.port}"
