"""Backup and restore of the services: database and secret file, in one archive.

The archive is a tar file with `manifest.json`, the dump of the database and, unless left out, `secret`. A dump is
consistent, and taken while the services run. A restore checks the whole archive before it changes anything. It is whole
or absent: no process serves half of one. What was signed before the restore is refused after it (`Fence`).
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import aclosing, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from sqlalchemy import select
from sqlalchemy.engine import URL

from deepgrid.chain.book import AddressBook
from deepgrid.errors import ConfigurationError
from deepgrid.files import file_backup
from deepgrid.files.private_files import replace_file
from deepgrid.services import schema
from deepgrid.services.signing.request_signing import Domain
from deepgrid.services.storage.database import Database, Definition, LogChunk, sqlite_file, url_with_driver
from deepgrid.services.storage.grid_of_jobs import require_grid
from deepgrid.services.storage.vault import Vault, write_key

SECRET = "secret"
MOST_SECRET_BYTES = 1024

Kind = Literal["sqlite", "postgresql"]
DUMPS: dict[Kind, str] = {"sqlite": "database.sqlite", "postgresql": "database.dump"}
CONNECTION = ("host", "port", "user", "password", "database", "sslmode")
GRID = ("chain_id", "meta_scheduler", "credit", "provider_manager")


class Manifest(file_backup.Contents):
    """The content of a backup. `schema_step` is the last migration.

    `secret_sha256` is the hash of the key, even if the archive does not hold the key.
    """

    schema_step: str
    kind: Kind
    chain_id: int
    meta_scheduler: str
    credit: str
    provider_manager: str
    secret_sha256: str


def unpack_backup(archive: Path, folder: Path) -> Manifest:
    """Unpack the archive into the folder, and check it. Raises ConfigurationError."""
    most_bytes = dict.fromkeys(DUMPS.values(), sys.maxsize) | {SECRET: MOST_SECRET_BYTES}
    manifest = file_backup.unpack(archive, folder, Manifest, most_bytes.get)
    if DUMPS[manifest.kind] not in manifest.members:
        raise file_backup.damaged_archive(archive, file_backup.BAD_CHECKSUMS)
    return manifest


class SqliteFile:
    """A file, dumped by SQLite's backup call. A restore writes the whole file next to it, and links it in."""

    kind: Kind = "sqlite"

    def __init__(self, file: Path) -> None:
        self._file = file
        self.staging: Path | None = file.parent  # in which its dumps are unpacked; None for any folder

    def require_present(self) -> None:
        """Raise ConfigurationError if there is no database to back up."""
        if not self._file.is_file():
            raise ConfigurationError(f"There is no services' database at {self._file}.")

    def require_absent(self) -> None:
        """Raise ConfigurationError if there is a database, or a journal, which would be read into a new file."""
        for left in (self._file, *(Path(f"{self._file}{suffix}") for suffix in ("-wal", "-shm", "-journal"))):
            if left.exists() and (left != self._file or left.stat().st_size > 0):
                raise ConfigurationError(
                    f"The services' database is not empty: there is {left}.",
                    next_step="Stop the services, and move it away.",
                )

    async def dump(self, to: Path) -> None:
        """Write a dump into a new file. Raises ConfigurationError."""
        try:
            file_backup.copy_database(self._file, to)
            _single_file(to)
        except sqlite3.Error as error:
            raise ConfigurationError(f"The services' database cannot be backed up: {error}.") from None

    async def load(self, dump: Path) -> None:
        """Fill the empty database, and record the restore. May change the dump. Raises ConfigurationError."""
        async with aclosing(Database(f"sqlite:///{dump}")) as database:
            await database.end_restore(int(time.time()))
        _single_file(dump)
        self.require_absent()
        with suppress(FileNotFoundError):
            self._file.unlink()  # an empty one
        try:
            os.link(dump, self._file)
        except FileExistsError:
            raise ConfigurationError(f"{self._file} was made meanwhile.", next_step="Stop the services.") from None


@dataclass(frozen=True)
class Postgres:
    """PostgreSQL, dumped by `pg_dump`. The password is in the environment of the programs only."""

    url: str = field(repr=False)
    environment: dict[str, str] = field(repr=False)
    kind: Kind = "postgresql"
    staging: Path | None = None

    def require_present(self) -> None:
        _program("pg_dump")

    def require_absent(self) -> None:
        _program("pg_restore")

    async def dump(self, to: Path) -> None:
        await self._run("pg_dump", "--format=custom", "--no-owner", "--no-acl", "--table=grid_*", f"--file={to}")

    async def load(self, dump: Path) -> None:
        async with aclosing(Database(self.url)) as database:
            await database.begin_restore()
            whole = ("--single-transaction", "--exit-on-error", "--no-owner", "--no-acl")
            await self._run("pg_restore", *whole, "--dbname=", str(dump))  # PGDATABASE names the database
            await database.end_restore(int(time.time()))

    async def _run(self, name: str, *words: str) -> None:
        call, env = [_program(name), "--no-password", *words], os.environ | self.environment
        run = partial(subprocess.run, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
        done = await asyncio.to_thread(run, call, env=env, check=False)
        if done.returncode:  # later lines may quote rows
            said = next((line for line in done.stderr.splitlines() if "error:" in line), f"status {done.returncode}")
            raise ConfigurationError(f"{name} failed: {said[:300]}.")


def dumper_of(url: str) -> SqliteFile | Postgres:
    """Return the dumper for the database of this URL. Raises ConfigurationError."""
    parsed = url_with_driver(url)
    if parsed.get_backend_name() == "sqlite":
        return SqliteFile(sqlite_file(parsed))
    return Postgres(url, _environment(parsed))


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise ConfigurationError(f"{name} is not installed.", next_step="Install PostgreSQL's client programs.")
    return found


def _environment(url: URL) -> dict[str, str]:
    """Return the variables that PostgreSQL's programs read instead of the URL."""
    given = {**url.translate_connect_args(username="user"), **url.query}
    given["sslmode"] = given.pop("ssl", None)
    return {f"PG{name.upper()}": str(given[name]) for name in CONNECTION if given.get(name) is not None}


def _single_file(file: Path) -> None:
    """Put everything into the file itself, with no journal next to it."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")


async def back_up(
    archive: Path, database_url: str, secret_file: Path, book: AddressBook, *, without_secret: bool = False
) -> Manifest:
    """Write database and secret file into a new archive. Raises ConfigurationError.

    The database must be of the book's grid. The secret file must belong to it, even if it is left out.
    """
    file_backup.require_new(archive)
    if not secret_file.exists():
        raise ConfigurationError(f"There is no secret file at {secret_file}.")
    dumper = dumper_of(database_url)
    dumper.require_present()
    step = await _last_step(database_url, Vault.open(secret_file), Domain(book.chain_id, book.meta_scheduler))
    try:
        with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".backup.") as folder:  # mode 0700
            dump, secret = Path(folder, DUMPS[dumper.kind]), Path(folder, SECRET)
            await dumper.dump(dump)
            files = [dump]
            key = secret_file.read_bytes().strip()
            if not without_secret:
                replace_file(secret, key + b"\n")
                files.append(secret)
            fields = {name: getattr(book, name) for name in GRID} | file_backup.contents_of(files)
            digest = hashlib.sha256(key).hexdigest()
            manifest = Manifest(schema_step=step, kind=dumper.kind, secret_sha256=digest, **fields)
            file_backup.pack(archive, manifest, files)
            return manifest
    except OSError as error:
        raise ConfigurationError(f"The backup {archive} cannot be written: {error.strerror}.") from None


async def _last_step(database_url: str, vault: Vault, grid: Domain) -> str:
    """Return the last step of the schema.

    Raises ConfigurationError if the vault does not open the database, or the database is another grid's.
    """
    async with aclosing(Database(database_url)) as database:
        step = await database.last_step()
        async with database.read() as session:
            await (await session.connection()).run_sync(require_grid, grid)
            sealed = await session.scalar(select(Definition.sealed).where(Definition.sealed.is_not(None)).limit(1))
            sealed = sealed or await session.scalar(select(LogChunk.sealed).limit(1))
    if sealed is not None:
        vault.unseal(sealed)
    return step


async def restore(archive: Path, database_url: str, secret_file: Path, book: AddressBook) -> Manifest:
    """Restore the archive, and bring its tables to this release. Raises ConfigurationError.

    Nothing is changed unless the archive is whole, of this grid, and the database is empty.
    """
    dumper = dumper_of(database_url)
    dumper.require_absent()
    try:
        if dumper.staging is not None:
            dumper.staging.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=dumper.staging, prefix=".restore.") as name:  # mode 0700
            folder = Path(name)
            manifest = unpack_backup(archive, folder)
            _require_fit(manifest, dumper, book)
            key = _key(manifest, folder / SECRET, secret_file)
            write_key(secret_file, key + b"\n")  # first: without it, the services would make a new one
            await dumper.load(folder / DUMPS[manifest.kind])
            return manifest
    except OSError as error:
        raise ConfigurationError(f"The backup {archive} cannot be restored: {error.strerror}.") from None


def _require_fit(manifest: Manifest, dumper: SqliteFile | Postgres, book: AddressBook) -> None:
    """Raise ConfigurationError if the backup is of another grid, database or release, or of the future."""
    if manifest.kind != dumper.kind:
        raise ConfigurationError(f"The backup is of {manifest.kind}, the database is {dumper.kind}.")
    if manifest.chain_id != book.chain_id:
        raise ConfigurationError(f"The backup is of chain {manifest.chain_id}, the address book of {book.chain_id}.")
    for name in GRID[1:]:
        if getattr(manifest, name) != getattr(book, name):
            raise ConfigurationError(f"The backup is of a grid with another {name} than the address book's.")
    schema.require_known(manifest.schema_step)
    if manifest.made_at > time.time():
        raise ConfigurationError(
            "The backup was made later than now by this machine's clock.",
            next_step="Correct the clock: it decides which requests are refused as old.",
        )


def _key(manifest: Manifest, backed_up: Path, secret_file: Path) -> bytes:
    """Return the key of the backup: from the archive, or from the secret file. Raises ConfigurationError."""
    if secret_file.exists():
        Vault.open(secret_file)  # refuses a file that others may read
    elif not backed_up.exists():
        raise ConfigurationError(
            "The backup does not hold the secret file.", next_step=f"Put it at {secret_file} first, with mode 0600."
        )
    keys = [file.read_bytes().strip() for file in (secret_file, backed_up) if file.exists()]
    if any(hashlib.sha256(key).hexdigest() != manifest.secret_sha256 for key in keys):
        raise ConfigurationError(
            f"The secret file {secret_file} does not match the backup.", next_step="Move it away, or use its backup."
        )
    return keys[0]
