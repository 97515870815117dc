"""Turns what the SSH library and sockets raise into our errors, each with a sentence and a next step. Pure.

A fault of the network, or one that is unknown, is SlurmUnreachable: it says nothing about any job. A host key or a key
that is refused is ConfigurationError.
"""

from __future__ import annotations

import socket

import paramiko
from paramiko.ssh_exception import IncompatiblePeer

from deepgrid.errors import ConfigurationError, GridError, SlurmUnreachable
from deepgrid.slurm.ssh.login_settings import Endpoint

# In texts of paramiko's AuthenticationException, if the connection broke meanwhile: the key was not refused.
CONNECTION_LOST = ("Authentication timeout", "saw EOF")
LONGEST_QUOTE = 300
CHECK_PATH = "Check that sshd runs there and that no firewall is between."
CHECK_SHELL = "Give the account a login shell that runs commands, and sshd no ForceCommand for it."
_FORBIDDEN = 1  # sshd's code of a channel that its settings forbid


def explain(fault: Exception, node: Endpoint) -> GridError:
    """Return our error for anything that is raised while this host is used."""
    if isinstance(fault, GridError):
        return fault
    if isinstance(fault, (paramiko.AuthenticationException, IncompatiblePeer)):
        return _refusal(fault, node)
    if isinstance(fault, (OSError, EOFError)):
        return unreachable(node, f"cannot be reached: {_reason(fault, node)}")
    words = fault.text if isinstance(fault, paramiko.ChannelException) else str(fault)
    return unreachable(node, f"broke the connection: {excerpt(words) or 'it gave no reason'}")


def explain_forward(fault: Exception, jump: Endpoint, node: Endpoint) -> GridError:
    """Return our error for a jump host that does not connect to the login node."""
    if isinstance(fault, paramiko.ChannelException) and fault.code == _FORBIDDEN:
        return ConfigurationError(
            f"The {jump} does not forward connections to {node.host}:{node.port}.",
            next_step="Allow it there: AllowTcpForwarding and PermitOpen of sshd, port-forwarding in authorized_keys.",
        )
    if isinstance(fault, paramiko.ChannelException):
        return SlurmUnreachable(f"The {jump} cannot reach the {node}.", next_step=CHECK_PATH)
    return explain(fault, jump)


def unreachable(node: Endpoint, what: str, next_step: str = CHECK_PATH) -> SlurmUnreachable:
    """Return the error for a host that does not do its part now."""
    return SlurmUnreachable(f"The {node} {what}.", next_step=next_step)


def never_ran(*printed: bytes) -> SlurmUnreachable:
    """Return the error for a session that ended before our command ran, with what the server said."""
    said = excerpt(" ".join(text.decode(errors="replace") for text in printed))
    words = "The login node ended the session before it ran the command"
    return SlurmUnreachable(f"{words}; it said: {said}" if said else f"{words}.", next_step=CHECK_SHELL)


def excerpt(text: str) -> str:
    """Return the beginning of another party's text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_QUOTE else f"{line[:LONGEST_QUOTE]}..."


def _refusal(fault: Exception, node: Endpoint) -> GridError:
    if isinstance(fault, IncompatiblePeer):
        return ConfigurationError(
            f"The {node} and this machine have no common SSH algorithm: {excerpt(str(fault))}.",
            next_step="Allow the defaults of a newer OpenSSH in its sshd_config.",
        )
    if any(text in str(fault) for text in CONNECTION_LOST):
        return unreachable(node, "closed the connection during authentication")
    if isinstance(fault, paramiko.BadAuthenticationType):
        return needs_more(node, fault.allowed_types)
    return ConfigurationError(
        f"The {node} refuses the key of {node.user}.",
        next_step=f"Put the public half of {node.key_file} into its authorized_keys.",
    )


def needs_more(node: Endpoint, methods: list[str]) -> ConfigurationError:
    """Return the error for a host that asks for more than a key."""
    return ConfigurationError(
        f"The {node} asks {node.user} for more than a key: {excerpt(', '.join(methods))}.",
        next_step="Let this account log in with its key only (AuthenticationMethods publickey in sshd_config).",
    )


def _reason(fault: OSError | EOFError, node: Endpoint) -> str:
    match fault:
        case socket.gaierror():
            return f"the name {node.host} has no address ({fault.strerror})"
        case TimeoutError():
            return "it did not answer in time"
        case ConnectionRefusedError():
            return f"nothing listens on port {node.port}"
        case OSError() if fault.strerror:
            return fault.strerror
    return "it closed the connection"
