"""A running `dps web`, as a customer starts it."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from deepgrid.chain.book import AddressBook
from tests.waiting import wait_until

DPS = Path(sys.executable).with_name("dps")
BELOW_EPHEMERAL_PORTS = range(20_000, 32_000)


@dataclass
class LocalWeb:
    """The process, and the file with its newest address."""

    process: subprocess.Popen[bytes]
    file: Path
    used: str = ""

    def address(self) -> str:
        """Return the newest address, whose token was not returned before."""
        wait_until(lambda: self.newest() not in ("", self.used), self.process.poll)
        self.used = self.newest()
        return self.used

    @contextmanager
    def session(self) -> Iterator[httpx.Client]:
        """Yield a client that has exchanged a token, as the page does."""
        url, _, token = self.address().partition("/#token=")
        with httpx.Client(base_url=url, headers={"Origin": url}, trust_env=False, timeout=60) as page:
            page.headers["X-Grid-Signer"] = page.post("/signer/session", json={"token": token}).json()["session"]
            yield page

    def newest(self) -> str:
        """Return the address in the file; empty before the first one."""
        assert self.process.poll() is None, "dps web has ended"
        return self.file.read_text().strip() if self.file.exists() else ""


@contextmanager
def local_web(book: AddressBook, key: Path, folder: Path, port: int = 0) -> Iterator[LocalWeb]:
    """Run `dps web` for the owner of `key` until the context ends."""
    file = folder / "address"
    file.unlink(missing_ok=True)
    argv = [
        str(DPS), "web", "--port", str(port), "--address-file", str(file), "--key", str(key),
        "--book", str(book.save(folder / "book.json")),
    ]  # fmt: skip
    env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, env=env) as process:
        try:
            web = LocalWeb(process, file)
            wait_until(web.newest)
            yield web
        finally:
            process.terminate()


def lasting_port() -> int:
    """Return a free port that no other program gets by chance, for servers that use it in turn."""
    while True:
        port = random.choice(BELOW_EPHEMERAL_PORTS)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue
