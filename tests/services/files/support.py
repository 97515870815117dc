"""Services that keep files, a customer's folder, and a job of it whose script runs here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import select

from deepgrid.client.files import KeptFiles, send
from deepgrid.client.files.exchange import file_exchange
from deepgrid.client.settings import ClientSettings
from deepgrid.lifecycle.states import JobStatus
from deepgrid.sbatch.file_addresses import GridFiles
from deepgrid.services.client import FilesClient
from deepgrid.services.files.tables import Bundle
from deepgrid.workflow import Definition
from tests.sbatch.support import Bench, Outcome, job_with
from tests.services.support import ACCOUNTS, Grid

IMPATIENT = ClientSettings(patience_s=0.0)


@dataclass
class FileGrid:
    """The services with their files in a folder. Job 1 is claimed by the provider."""

    services: Grid
    store: Path

    def client(self, name: str = "customer") -> FilesClient:
        return FilesClient(self.services.clients[name])

    async def send(self, *paths: Path, name: str = "customer") -> str:
        return await send(self.client(name), paths, None, IMPATIENT)

    async def claimed(
        self, definition: Definition, job_id: int = 1, status: JobStatus = JobStatus.RUNNING, **changes: Any
    ) -> None:
        """Store the definition, and put a job of the customer that names it."""
        definition_hash = await self.services.customer.upload(definition)
        self.services.chain.put(job_id, definition_hash, status, **changes)

    async def addresses(self, job_id: int = 1) -> GridFiles:
        """Return what the provider's script of the job gets."""
        files = self.client("provider")
        found = await files.transfers(job_id)
        source, target = (files.url(one) if one else "" for one in (found.input, found.output))
        return GridFiles(source, target)

    async def run(self, bench: Bench, definition: Definition, job_id: int = 1) -> Outcome:
        """Run the job's script on this machine."""
        bench.grid_files = await self.addresses(job_id)
        return await asyncio.to_thread(bench.run, definition)

    async def content_bytes(self, name: str = "customer") -> int:
        """Return the part of a customer's quota that contents take, without the lists of files."""
        async with self.services.context.database.read() as session:
            sizes = select(Bundle.size).where(Bundle.owner == ACCOUNTS[name].address)
            return sum((await session.scalars(sizes)).all())

    @asynccontextmanager
    async def kept(self, job_id: int = 1, name: str = "customer") -> AsyncIterator[KeptFiles]:
        files = self.client(name)
        found = await files.of_job(job_id)
        async with file_exchange(files.url(found.address), None) as exchange:
            yield KeptFiles(exchange, IMPATIENT)

    async def names(self, job_id: int = 1) -> list[str]:
        async with self.kept(job_id) as kept:
            return [entry.path for entry in (await kept.manifest()).entries]

    async def download(self, to: Path, job_id: int = 1) -> list[Path]:
        async with self.kept(job_id) as kept:
            return await kept.fetch(await kept.manifest(), to, lambda _: True)


def grid_job(command: str, source: object = None, *, output: bool = True) -> Definition:
    """Return a job with this input that lets the grid keep its output."""
    head: dict[str, object] = {"output": {"grid": {}}} if output else {}
    return job_with(head | ({"input": source} if source else {}), command)


async def get(url: str, **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(timeout=30) as client:
        return await client.get(url, headers=headers)


async def put(url: str, content: bytes, **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(timeout=30) as client:
        return await client.put(url, content=content, headers=headers)


def content_of(folder: Path) -> dict[str, bytes]:
    """Return each file below the folder by its name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def filled(folder: Path, files: dict[str, bytes] | Sequence[str]) -> Path:
    """Write these files, and return the folder."""
    named = files if isinstance(files, dict) else {name: name.encode() for name in files}
    for name, content in named.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder
