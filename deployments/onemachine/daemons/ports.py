"""Ports of one grid by name. Each is chosen once from the free ports and recorded. It never changes."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from deepgrid.errors import ConfigurationError

RANGE = "DEEPGRID_PORTS"  # environment variable with the range of ports
USUAL = "20000-32000"  # below the kernel's range for outgoing connections


class PortBook:
    """Records ports in `file`. Grids with different state folders start their search at different ports."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def port(self, name: str) -> int:
        """Return the port with this name. The first call chooses it. Raises ConfigurationError when no port is free."""
        with self._open() as ports:
            if name not in ports:
                ports[name] = self._choose(name, set(ports.values()))
            return ports[name]

    def known(self, name: str) -> int | None:
        """Return the port with this name, or None if it was not chosen yet."""
        with self._open() as ports:
            return ports.get(name)

    def forget_taken(self, serves: Callable[[str], bool]) -> None:
        """Forget ports that other programs use now. `serves` says whether our own process uses a port."""
        with self._open() as ports:
            for name in [name for name, port in ports.items() if not serves(name) and not _free(port)]:
                del ports[name]

    @contextmanager
    def _open(self) -> Iterator[dict[str, int]]:
        """Yield the ports, under a lock. Changes are written back."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with open(self._file, "a+") as book:
            fcntl.flock(book, fcntl.LOCK_EX)
            book.seek(0)
            before: dict[str, int] = json.loads(book.read() or "{}")
            ports = dict(before)
            yield ports
            if ports != before:
                book.truncate(0)
                book.write(json.dumps(ports, indent=1))

    def _choose(self, name: str, taken: set[int]) -> int:
        seed = hashlib.sha256(f"{self._file.resolve()}:{name}".encode()).digest()
        first, last = _range()
        span = last - first
        start = int.from_bytes(seed[:4], "big")
        for step in range(span):
            port = first + (start + step) % span
            if port not in taken and _free(port):
                return port
        raise ConfigurationError(f"No free port between {first} and {last}.")


def _range() -> tuple[int, int]:
    """Return the first port of the range, and the end of the range (exclusive)."""
    text = os.environ.get(RANGE, USUAL)
    match = re.fullmatch(r"(\d{4,5})-(\d{4,5})", text)
    if match is None or not 1024 <= int(match[1]) < int(match[2]) <= 65536:
        raise ConfigurationError(f"{RANGE} is {text!r}, not a range of ports such as {USUAL}.")
    return int(match[1]), int(match[2])


def _free(port: int) -> bool:
    with socket.socket() as probe:
        # Only a listening socket matters, not connections of a server that has just ended.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
