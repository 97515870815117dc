"""A live grid for tests of `dps`: a chain with the contracts, the two services, parties with funded keys.

The tests act as providers and operator. `dps` runs as a separate process.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deepgrid.lifecycle.job import Hardware, Label, Prices
from deepgrid.services.client import ServicesClient
from tests.chain.grid import Grid
from tests.cli import forker
from tests.services.edge_support import Edge, running_edge, short_folder

CREDIT = 10**18
EXAMPLE = Path(__file__).parents[2] / "examples" / "hello-world.yaml"
WITHIN_S = 300  # machines are shared
OWN_VARIABLES = ("DPS", "DEEPGRID", "METASCHEDULER", "SBATCH_ENDPOINT", "LOGGER_ENDPOINT", "ETH_PRIVATE")
LISTENING = re.compile(r"listen (?:at|for their proxy at) (\S+)")
HARDWARE = Hardware(gpus_per_node=(0, 0), cpus_per_node=(4, 4), mem_per_node_mb=(8000, 8000))
PRICES = Prices(gpu_wei_per_minute=CREDIT, cpu_wei_per_minute=CREDIT // 2, mem_wei_per_mb_minute=CREDIT // 1000)
LABELS = (Label("name", "alpha"), Label("os", "linux"), Label("storage.s3", "true"))


@dataclass(frozen=True)
class Outcome:
    """Result of a run of `dps`."""

    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Dps:
    """The command, with one key and one grid. With `forker`, the socket of a process that starts it quickly."""

    home: Path
    book: Path
    key: Path
    forker: Path | None = field(default=None, kw_only=True)

    @property
    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(OWN_VARIABLES)}
        own = {"HOME": str(self.home), "DEEPGRID_BOOK": str(self.book), "DPS_KEY_FILE": str(self.key), "TZ": "UTC"}
        return inherited | own

    def command(self, *args: str | Path) -> list[str]:
        """Return the command line of the command with these arguments."""
        python = ("-I", "-S", forker.__file__, self.forker) if self.forker else ("-m", "deepgrid.cli")
        return [sys.executable, *map(str, (*python, *args))]

    async def run(self, *args: str | Path) -> Outcome:
        """Run the command to its end."""
        return await finished(await self.start(*args))

    async def start(self, *args: str | Path) -> asyncio.subprocess.Process:
        """Start the command. `finished` waits for it."""
        return await asyncio.create_subprocess_exec(
            *self.command(*args),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=self.environment, cwd=str(self.home),
        )  # fmt: skip


async def finished(process: asyncio.subprocess.Process) -> Outcome:
    """Return the result of the process. A process that does not end is killed."""
    try:
        async with asyncio.timeout(WITHIN_S):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return Outcome(process.returncode, (out or b"").decode(), (err or b"").decode())


@contextmanager
def forking(path: Path) -> Iterator[Path]:
    """Run a process that forks `dps`. Yields its socket."""
    argv = [sys.executable, "-m", "tests.cli.forker", "--serve", str(path)]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + WITHIN_S
            while not path.exists():
                assert process.poll() is None and time.monotonic() < deadline, "the forker does not start"
                time.sleep(0.05)
            yield path
        finally:
            process.terminate()


@dataclass(frozen=True)
class Live:
    """The grid of a test session; `book` is its address book on disk."""

    grid: Grid
    book: Path

    def address_book(self) -> AddressBook:
        return AddressBook.load(self.book)


@dataclass(frozen=True)
class Party:
    """A party of the grid, with the sessions of its role."""

    writer: Writer
    services: ServicesClient

    @property
    def address(self) -> str:
        return self.writer.address

    async def close(self) -> None:
        await self.writer.sender.close()
        await self.services.close()


def party(chain: Chain, wallet: Wallet) -> Party:
    """Return the party that holds this wallet."""
    book = chain.book
    services = ServicesClient(book.definitions_url, wallet.account, book.chain_id, book.meta_scheduler)
    return Party(Writer(chain, Sender(chain, wallet)), services)


class Wire:
    """A proxy to a server that can be cut and restored. `url` leads through it.

    `cut_after` names bytes of a request: the proxy is cut as soon as it has forwarded them, so no answer comes.
    With `tls`, it speaks TLS for a server that does not.
    """

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        self._target = urlsplit(url)
        self._tls = tls
        self.cut_after: bytes | None = None
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._port = 0

    @property
    def url(self) -> str:
        return f"https://localhost:{self._port}" if self._tls else f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Wire:
        await self.mend()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.cut()

    async def mend(self) -> None:
        """Forward connections, on the same port as before."""
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", self._port, ssl=self._tls)
        self._port = self._server.sockets[0].getsockname()[1]

    def lead_to(self, url: str) -> None:
        """Forward new connections to another server."""
        self._target = urlsplit(url)

    async def cut(self) -> None:
        """Drop every connection and refuse new ones."""
        assert self._server is not None
        self._server.close()
        for writer in self._open:
            writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(self._target.hostname, self._target.port)
        except OSError:  # the server is away
            writer.transport.abort()
            return
        both = {writer, far_writer}
        self._open |= both
        try:
            await asyncio.gather(_copy(reader, far_writer, self._look), _copy(far_reader, writer))
        finally:
            self._open -= both

    async def _look(self, request: bytes) -> None:
        if self.cut_after is not None and self.cut_after in request:
            self.cut_after = None
            await self.cut()


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, look: Callable[[bytes], Awaitable[None]] | None = None
) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
            if look is not None:
                await look(data)
    except OSError:
        pass
    finally:
        writer.close()


@contextmanager
def services_behind_proxy(book: AddressBook, folder: Path) -> Iterator[Edge]:
    """`dps services serve` for the grid of `book`, and nginx in front of it."""
    with (
        short_folder() as at, short_folder() as of_nginx, services_of(book, folder, "--sockets", str(at / "s")),
        running_edge(of_nginx, at / "s") as edge,
    ):  # fmt: skip
        yield edge


@contextmanager
def services_of(book: AddressBook, folder: Path, *where: str) -> Iterator[str]:
    """`dps services serve` for the grid of `book`; yields where it listens: its URL, or with `--sockets` a path."""
    book_file = book.save(folder / "services-book.json")
    log = folder / "services.log"
    argv = [
        sys.executable, "-m", "deepgrid.cli", "services", "serve", "--book", str(book_file),
        "--database", f"sqlite:///{folder / 'services.sqlite'}", "--secret-file", str(folder / "secret"),
        "--files", str(folder / "kept"), *(where or ("--port", "0")),
    ]  # fmt: skip
    with log.open("wb") as file:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    try:
        deadline = time.monotonic() + WITHIN_S
        while (found := LISTENING.search(log.read_text())) is None:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, "the services do not start"
            time.sleep(0.05)
        yield found[1]
    finally:
        process.terminate()
        process.wait(WITHIN_S)
