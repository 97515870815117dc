"""Helpers for tests of backups: an address book of the tests' grid, and machines with a database."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from deepgrid.chain.book import AddressBook
from deepgrid.services.database_backup import Manifest, back_up, restore
from tests.services.support import DOMAIN

BOOK = AddressBook(
    chain_id=DOMAIN.chain_id, rpc_url="http://127.0.0.1:1", meta_scheduler=DOMAIN.verifying_contract,
    credit="0x" + "22" * 20, provider_manager="0x" + "33" * 20,
    definitions_url="http://127.0.0.1:1", logs_url="http://127.0.0.1:1",
)  # fmt: skip


@dataclass(frozen=True)
class Machine:
    """The places of a machine's database, secret file and address book."""

    folder: Path
    url: str

    @classmethod
    def at(cls, folder: Path, url: str | None = None) -> Machine:
        folder.mkdir(exist_ok=True)
        BOOK.save(folder / "grid.json")
        return cls(folder, url or f"sqlite:///{folder}/services.sqlite")

    @property
    def secret(self) -> Path:
        return self.folder / "secret"

    async def back_up(self, archive: Path, *, without_secret: bool = False) -> Manifest:
        return await back_up(archive, self.url, self.secret, BOOK, without_secret=without_secret)

    async def restore(self, archive: Path, book: AddressBook = BOOK) -> Manifest:
        return await restore(archive, self.url, self.secret, book)

    async def dps(self, *words: str | Path, status: int = 0) -> str:
        """Return the output of `dps services WORDS` with this machine's environment."""
        environment = os.environ | {
            "DEEPGRID_SERVICES_DATABASE": self.url,
            "DEEPGRID_SERVICES_SECRET_FILE": str(self.secret),
            "DEEPGRID_BOOK": str(self.folder / "grid.json"),
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "deepgrid.cli", "services", *map(str, words),
            env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        output, _ = await process.communicate()
        assert process.returncode == status, output.decode()
        return " ".join(output.decode().split())
