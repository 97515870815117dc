"""The sockets of one process of the services."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from deepgrid.errors import ConfigurationError
from deepgrid.services.app import ServicesSettings

LOOPBACK = "127.0.0.1"
BACKLOG = 1024
LONGEST_PATH = 107  # bytes of a Unix socket's path


@dataclass(frozen=True, slots=True)
class Listeners:
    """Listening sockets for HTTP and optionally for gRPC. `are_behind_proxy`: only the proxy reaches them."""

    http: socket.socket
    grpc: socket.socket | None
    are_behind_proxy: bool


@contextmanager
def open_listeners(settings: ServicesSettings, *, with_grpc: bool = True) -> Iterator[Listeners]:
    """Listen at `http.sock` and `grpc.sock` in the folder `sockets`, for this account and the proxy's group.

    Without a folder, listen at the ports of loopback; port 0 takes a free one.
    Raises ConfigurationError if the folder cannot be used, a port is taken, or another process serves there.
    """
    sockets, group = settings.sockets, settings.socket_group
    with ExitStack() as stack:
        if sockets is None:
            port = settings.grpc_port if with_grpc else None
            http = stack.enter_context(closing(_at_port(settings.port)))
            grpc = None if port is None else stack.enter_context(closing(_at_port(port)))
            yield Listeners(http, grpc, are_behind_proxy=False)
            return
        _share_folder(sockets, group)
        http = stack.enter_context(_in_folder(sockets / "http.sock", group))
        grpc = stack.enter_context(_in_folder(sockets / "grpc.sock", group)) if with_grpc else None
        yield Listeners(http, grpc, are_behind_proxy=True)


def address_of(listener: socket.socket) -> str:
    """Return the listening address for a log line: `127.0.0.1:3000`, or the path of a Unix socket."""
    name = listener.getsockname()
    return str(name) if isinstance(name, str) else f"{name[0]}:{name[1]}"


def _at_port(port: int) -> socket.socket:
    try:
        listener = socket.create_server((LOOPBACK, port), backlog=BACKLOG)
    except OSError as error:
        raise ConfigurationError(f"The services cannot listen at {LOOPBACK}:{port}: {error.strerror}.") from None
    listener.setblocking(False)
    return listener


def _share_folder(folder: Path, group: str | None) -> None:
    """Make the folder, open to this account and the group only."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if group is not None:
            shutil.chown(folder, group=group)
        folder.chmod(0o700 if group is None else 0o710)
    except (OSError, LookupError) as error:
        raise _unusable(folder, error) from None


@contextmanager
def _in_folder(path: Path, group: str | None) -> Iterator[socket.socket]:
    """Yield a listening Unix socket at this path, which is removed at the end."""
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise ConfigurationError(
            f"The path of a Unix socket has at most {LONGEST_PATH} bytes: {path} is too long.",
            next_step="Choose a shorter folder with --sockets.",
        )
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        try:
            _remove_stale(path)
            listener.bind(str(path))
            if group is not None:
                shutil.chown(path, group=group)
            path.chmod(0o600 if group is None else 0o660)
            listener.listen(BACKLOG)
        except (OSError, LookupError) as error:
            raise _unusable(path, error) from None
        listener.setblocking(False)
        try:
            yield listener
        finally:
            path.unlink(missing_ok=True)


def _remove_stale(path: Path) -> None:
    """Remove the socket of a process that was killed. Raises ConfigurationError if one serves there."""
    with closing(socket.socket(socket.AF_UNIX)) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            path.unlink(missing_ok=True)
            return
    raise ConfigurationError(
        f"Another process of the services listens at {path}.", next_step="Stop it, or choose another --sockets."
    )


def _unusable(path: Path, error: Exception) -> ConfigurationError:
    reason = getattr(error, "strerror", None) or error
    return ConfigurationError(f"The services cannot listen at {path}: {reason}.")
