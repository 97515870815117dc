"""Ports of one grid by name: picked once among free ones, recorded, and the same ever after."""

from __future__ import annotations

import fcntl
import hashlib
import json
import socket
from pathlib import Path

from deepgrid.errors import ConfigurationError

FIRST, LAST = 20000, 32000  # below the range from which kernels take ports for outgoing connections


class PortBook:
    """Remembers ports in `file`; grids with different state folders start looking at different places."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def port(self, name: str) -> int:
        """The port called `name`, chosen at the first call. Raises ConfigurationError when none is free."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with open(self._file, "a+") as book:
            fcntl.flock(book, fcntl.LOCK_EX)
            book.seek(0)
            ports: dict[str, int] = json.loads(book.read() or "{}")
            if name not in ports:
                ports[name] = self._choose(name, set(ports.values()))
                book.truncate(0)
                book.write(json.dumps(ports, indent=1))
        return ports[name]

    def _choose(self, name: str, taken: set[int]) -> int:
        seed = hashlib.sha256(f"{self._file.resolve()}:{name}".encode()).digest()
        span = LAST - FIRST
        start = int.from_bytes(seed[:4], "big")
        for step in range(span):
            port = FIRST + (start + step) % span
            if port not in taken and _free(port):
                return port
        raise ConfigurationError(f"No free port between {FIRST} and {LAST}.")


def _free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
