"""Opens SSH transports: to one login node, directly or through a jump host, with its host key checked."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import paramiko

from deepgrid.errors import ConfigurationError
from deepgrid.slurm.ssh.known_hosts import KnownHosts, host_name
from deepgrid.slurm.ssh.login_settings import Endpoint, LoginSettings
from deepgrid.slurm.ssh.ssh_errors import explain, explain_forward, needs_more

PARAMIKO_LOG = f"{__name__}.paramiko"

# paramiko logs a stack trace for each broken connection; our errors say the same in a sentence.
logging.getLogger(PARAMIKO_LOG).setLevel(logging.CRITICAL)


class Transport(paramiko.Transport):
    """A transport that closes the one to its jump host with itself.

    `writer` is one thread for all channels that stay. While the transport stalls, a write to any of them waits.
    """

    jump: paramiko.Transport | None = None

    def __init__(self, sock: socket.socket | paramiko.Channel) -> None:
        super().__init__(sock)
        self.writer = ThreadPoolExecutor(1, thread_name_prefix="ssh-writer")

    def close(self) -> None:
        super().close()
        self.writer.shutdown(wait=False)
        if self.jump is not None:
            self.jump.close()


def open_transport(settings: LoginSettings, node: Endpoint) -> Transport:
    """Return an authenticated transport to this login node. Raises SlurmUnreachable and ConfigurationError."""
    transport = _connect(settings, node)
    try:
        _log_in(node, transport)
    except BaseException:
        transport.close()
        raise
    return transport


def fetch_host_key(settings: LoginSettings, node: Endpoint) -> paramiko.PKey:
    """Return the key that the login node shows now, whether it is known or not. Raises as `open_transport` does."""
    with closing(_connect(settings, node)) as transport, _translate_errors(node):
        return transport.get_remote_server_key()


def check_host_key(node: Endpoint, key: paramiko.PKey) -> None:
    """Raise ConfigurationError unless the known_hosts file has this key for the host."""
    keys = KnownHosts.load(node.known_hosts_file).of(node.host, node.port)
    if keys.trusts(key):
        return
    shown = f"{key.get_name()} {key.fingerprint}"
    if keys.revokes(key):
        raise ConfigurationError(
            f"The {node} shows the host key {shown}, which {node.known_hosts_file} revokes.",
            next_step="Ask its administrator. Another machine may pretend to be this one.",
        )
    if keys.trusted:
        raise ConfigurationError(
            f"The {node} shows another host key than those in {node.known_hosts_file}: {shown}.",
            next_step="Ask the cluster's administrator why before you add it to that file.",
        )
    hint = " The file names an authority for this host, and signatures of host keys are not checked."
    raise ConfigurationError(
        f"The host key of {host_name(node.host, node.port)} ({shown}) is not in the known_hosts file"
        f" {node.known_hosts_file}.{hint if keys.has_authority else ''}",
        next_step="Compare it with the cluster's administrator, then add it.",
    )


def _connect(settings: LoginSettings, node: Endpoint) -> Transport:
    """Return a transport that knows the host's key, and has checked nothing yet."""
    if settings.jump is None:
        return _start(settings, node, _dial(settings, node))
    jump = _start(settings, settings.jump, _dial(settings, settings.jump))
    try:
        _log_in(settings.jump, jump)
        try:
            target, origin = (node.host, node.port), ("127.0.0.1", 0)
            line = jump.open_channel("direct-tcpip", target, origin, timeout=settings.connect_timeout_s)
        except Exception as fault:
            raise explain_forward(fault, settings.jump, node) from None
        transport = _start(settings, node, line)
    except BaseException:
        jump.close()
        raise
    transport.jump = jump
    return transport


def _dial(settings: LoginSettings, node: Endpoint) -> socket.socket:
    """Connect to the first address of the host that answers. The kernel reports a peer that is gone."""
    with _translate_errors(node):
        line = socket.create_connection((node.host, node.port), settings.connect_timeout_s)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, settings.dead_peer_s * 1000)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # keys that a person types are not held back
        return line


def _start(settings: LoginSettings, node: Endpoint, line: socket.socket | paramiko.Channel) -> Transport:
    with _translate_errors(node):
        transport: Transport | None = None
        try:
            transport = Transport(line)
            transport.set_log_channel(PARAMIKO_LOG)
            transport.banner_timeout = transport.auth_timeout = settings.connect_timeout_s
            _prefer(transport, node.known_hosts_file, node)
            transport.start_client(timeout=settings.connect_timeout_s)
            transport.set_keepalive(settings.keepalive_s)
        except BaseException:
            (transport or line).close()
            raise
        return transport


def _prefer(transport: Transport, known_hosts: Path, node: Endpoint) -> None:
    """Ask for a key of a type that the known_hosts file has for this host, where there is one."""
    options = transport.get_security_options()
    known = KnownHosts.load(known_hosts).of(node.host, node.port).algorithms() if known_hosts.exists() else []
    wanted = [name for name in known if name in options.key_types]
    options.key_types = [*wanted, *(name for name in options.key_types if name not in wanted)]


def _log_in(node: Endpoint, transport: Transport) -> None:
    """Check the host's key, then authenticate."""
    with _translate_errors(node):
        check_host_key(node, transport.get_remote_server_key())
        key = read_private_key(node.key_file)
        missing = transport.auth_publickey(node.user, key)
    if missing:
        raise needs_more(node, missing)


@contextmanager
def _translate_errors(node: Endpoint) -> Iterator[None]:
    """Turn everything that the library raises for this host into our errors."""
    try:
        yield
    except Exception as fault:
        raise explain(fault, node) from None


def read_private_key(path: Path) -> paramiko.PKey:
    """Return the private key in a file that only its owner can read. Raises ConfigurationError."""
    try:
        if path.stat().st_mode & 0o077:
            raise ConfigurationError(f"Others can read the key file {path}.", next_step=f"Run chmod 600 {path}.")
        return paramiko.PKey.from_path(path)
    except FileNotFoundError:
        raise ConfigurationError(f"{path} does not exist.", next_step="Make it with ssh-keygen.") from None
    except OSError as fault:
        raise ConfigurationError(f"{path} cannot be read: {fault.strerror}.") from None
    except ConfigurationError:
        raise
    except Exception:  # paramiko's readers of keys raise many kinds of errors for damaged files
        raise ConfigurationError(
            f"{path} is not a private key without passphrase.",
            next_step="Make one with ssh-keygen, or remove its passphrase.",
        ) from None
