"""`./run bench files`: 10,000 small files and one of 2 GB, up and down, killed and resumed, against plain HTTP.

The services run as their own process on a chain in memory, with files in a folder. The client is killed half-way up,
and started again. The same happens to the download. A plain server of the same library stores and returns the same
bytes in the same run. The last line is JSON: `up_ratio` and `down_ratio` (rate by rate of plain HTTP), `rss_mb` (most
memory of the services). Exit status 1: a ratio is below 0.5, the memory is 200 MB or more, or a file differs.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from deepgrid.client.files import KeptFiles, file_exchange, scan, send
from deepgrid.client.settings import ClientSettings
from deepgrid.sbatch.file_addresses import PART_BYTES
from deepgrid.services.client import FilesClient
from deepgrid.services.files.buffers import ALLOCATOR
from tests.services.support import ACCOUNTS, client_of, starting

SMALL, SMALL_BYTES = 10_000, 1000
LARGE_BYTES = int(os.environ.get("DEEPGRID_BENCH_BYTES", str(2 * 1024**3)))
PIECE = 1024 * 1024
MOST_RSS_MB, LEAST_RATIO = 200, 0.5
SETTINGS = ClientSettings()


async def serve(folder: Path) -> None:
    """Serve files until standard input ends. Prints the URL."""
    async with starting(folder) as start:
        grid = await start(files=str(folder / "store"))
        print(grid.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


def serve_plain(folder: Path) -> None:
    """Serve one file over plain HTTP. Prints the URL."""
    place = folder / "plain"

    async def put(request: Request) -> Response:
        with place.open("wb") as file:
            async for data in request.stream():
                await asyncio.to_thread(file.write, data)
        return Response(status_code=204)

    async def get(_: Request) -> Response:
        async def pieces() -> AsyncIterator[bytes]:
            with place.open("rb") as file:
                while data := await asyncio.to_thread(file.read, PIECE):
                    yield data

        return StreamingResponse(pieces())

    app = Starlette(routes=[Route("/x", put, methods=["PUT"]), Route("/x", get)])
    config = uvicorn.Config(app, port=0, log_level="error", loop="uvloop", http="httptools")
    sock = config.bind_socket()
    sock.listen()
    print(f"http://127.0.0.1:{sock.getsockname()[1]}", flush=True)
    uvicorn.Server(config).run(sockets=[sock])


@contextmanager
def child(role: str, *args: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run this module in another role. Yields the process and its first line."""
    command = [sys.executable, "-m", "tests.bench.files", role, *args]
    env = {**os.environ, **ALLOCATOR}
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


async def plain_rates(url: str, source: Path, target: Path) -> tuple[float, float]:
    """Return bytes per second of one large file, up and down."""
    async with aiohttp.ClientSession(read_bufsize=PIECE) as session:
        began = time.monotonic()
        with source.open("rb") as file:
            (await session.put(f"{url}/x", data=file)).raise_for_status()
        up_s = time.monotonic() - began
        began = time.monotonic()
        async with session.get(f"{url}/x") as answer:
            with target.open("wb") as file:
                async for data in answer.content.iter_chunked(PIECE):
                    await asyncio.to_thread(file.write, data)
        down_s = time.monotonic() - began
    target.unlink()
    return source.stat().st_size / up_s, source.stat().st_size / down_s


async def upload(url: str, folder: Path) -> str:
    async with client_of(url, ACCOUNTS["customer"]) as services:
        return await send(FilesClient(services), [folder], None, SETTINGS)


async def download(url: str, address: str, to: Path) -> None:
    async with file_exchange(url + address, None) as exchange:
        kept = KeptFiles(exchange, SETTINGS)
        await kept.fetch(await kept.manifest(), to, lambda _: True)


def killed(role: str, *args: str, after_s: float) -> None:
    """Run a client for a while, and kill it."""
    process = subprocess.Popen([sys.executable, "-m", "tests.bench.files", role, *args])
    time.sleep(after_s)
    process.kill()
    process.wait()


def rss_mb(process: subprocess.Popen[str]) -> float:
    """Return the most memory that the process had."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def make(folder: Path) -> None:
    (folder / "small").mkdir(parents=True)
    for number in range(SMALL):
        (folder / "small" / f"{number:05d}.txt").write_bytes(number.to_bytes(4, "big") * (SMALL_BYTES // 4))
    with (folder / "large.bin").open("wb") as file:
        for _ in range(LARGE_BYTES // PART_BYTES):
            file.write(os.urandom(PIECE) * (PART_BYTES // PIECE))


def differing(one: Path, other: Path) -> list[str]:
    """Return the files that one folder has and the other has not: by name, content, and whether they can be run."""
    found = [
        {(entry.path, entry.size, entry.sha256, bool(entry.mode & 0o100)) for entry in scan([folder]).manifest.entries}
        for folder in (one, other)
    ]
    names = sorted({path for path, *_ in found[0] ^ found[1]})
    if names:
        print(f"{len(names)} files differ: {', '.join(names[:5])}", flush=True)
    return names


def address_of(stored: str, folder: Path) -> str:
    """Return an address at which the upload can be read; the services' key is in the folder."""
    from deepgrid.services.files.addresses import Address, Addresses
    from deepgrid.services.storage.vault import Vault

    addresses = Addresses(Vault.open(folder / "secret").derive("addresses"))
    return addresses.path(Address("get", stored, int(time.time()) + 3600))


def measure(work: Path) -> dict[str, float]:
    """Measure both ways, each killed and resumed, and without that."""
    make(work / "sent")
    (work / "grid").mkdir()
    size = sum(path.stat().st_size for path in (work / "sent").rglob("*") if path.is_file())
    with child("plain", str(work)) as (_, plain_url):
        up, down = asyncio.run(plain_rates(plain_url, work / "sent/large.bin", work / "back.bin"))
    with child("serve", str(work / "grid")) as (process, url):
        killed("upload", url, str(work / "sent"), after_s=4)
        began = time.monotonic()
        stored = asyncio.run(upload(url, work / "sent"))
        print(f"resumed the upload in {time.monotonic() - began:.1f} s")
        other = work / "again"
        (work / "sent").rename(other)  # other names are another manifest, which is sent as a whole
        began = time.monotonic()
        asyncio.run(upload(url, other))
        up_s = time.monotonic() - began
        address = address_of(stored, work / "grid")
        killed("download", url, address, str(work / "back"), after_s=4)
        asyncio.run(download(url, address, work / "back"))
        other.rename(work / "sent")
        same = differing(work / "back/sent", work / "sent") == []
        began = time.monotonic()
        asyncio.run(download(url, address, work / "whole"))
        down_s = time.monotonic() - began
        memory = rss_mb(process)
    print(f"plain HTTP: {up / 1e6:.0f} MB/s up, {down / 1e6:.0f} MB/s down")
    print(f"files: {size / up_s / 1e6:.0f} MB/s up, {size / down_s / 1e6:.0f} MB/s down", flush=True)
    return {
        "up_ratio": round(size / up_s / up, 3),
        "down_ratio": round(size / down_s / down, 3),
        "rss_mb": round(memory, 1),
        "same": same,
    }


def main() -> None:
    """Run the role that the arguments name."""
    match sys.argv[1:]:
        case ["serve", folder]:
            uvloop.run(serve(Path(folder)))  # as `dps services serve` does
        case ["plain", folder]:
            serve_plain(Path(folder))
        case ["upload", url, folder]:
            asyncio.run(upload(url, Path(folder)))
        case ["download", url, address, to]:
            asyncio.run(download(url, address, Path(to)))
        case _:
            with tempfile.TemporaryDirectory() as work:
                found = measure(Path(work))
                print(json.dumps(found), flush=True)
            ratio = min(found["up_ratio"], found["down_ratio"])
            sys.exit(ratio < LEAST_RATIO or found["rss_mb"] >= MOST_RSS_MB or not found["same"])


if __name__ == "__main__":
    main()
