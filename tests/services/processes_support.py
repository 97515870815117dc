"""Processes of the services on one database, and a round-robin proxy in front of them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from deepgrid.errors import GridError
from tests.waiting import until

T = TypeVar("T")
LISTENING = re.compile(r"listen at http://127\.0\.0\.1:(\d+)")


@dataclass(frozen=True)
class ServingProcess:
    """One `dps services serve`."""

    process: asyncio.subprocess.Process
    port: int
    log: Path


@asynccontextmanager
async def serving(book: Path, database_url: str, secret: Path, log: Path) -> AsyncIterator[ServingProcess]:
    """Start the services on a free port. The process is killed at the end if it still runs."""
    environment = os.environ | {"DEEPGRID_SERVICES_DATABASE": database_url}
    argv = ["services", "serve", "--book", book, "--secret-file", secret, "--port", "0", "--no-web"]
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "deepgrid.cli", *argv, stdout=file, stderr=file, env=environment
        )

    async def listens() -> bool:
        assert process.returncode is None, log.read_text()
        return LISTENING.search(log.read_text()) is not None

    try:
        await until(listens, within_s=120)
        found = LISTENING.search(log.read_text())
        assert found is not None
        yield ServingProcess(process, int(found[1]), log)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@asynccontextmanager
async def round_robin(ports: list[int]) -> AsyncIterator[str]:
    """Run a proxy that gives each connection to the next port that accepts it. Yields its URL."""
    turns = 0

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal turns
        for _ in ports:
            turns += 1
            with contextlib.suppress(OSError):
                upstream, down = await asyncio.open_connection("127.0.0.1", ports[turns % len(ports)])
                await asyncio.gather(_copy(reader, down), _copy(upstream, writer))
                return
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


async def persistently(call: Callable[[], Awaitable[T]]) -> T:
    """Call until it succeeds, as clients do while a service is away."""
    async with asyncio.timeout(120):
        while True:
            try:
                return await call()
            except GridError as error:
                if not error.transient:
                    raise
                await asyncio.sleep(0.2)
