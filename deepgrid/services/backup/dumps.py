"""Consistent dumps of the two kinds of database, taken while the services run, and how they are loaded."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from sqlalchemy.engine import URL

from deepgrid.errors import ConfigurationError
from deepgrid.file_backup import copy_database
from deepgrid.services.backup.backup_archive import Kind
from deepgrid.services.storage.database import Database, sqlite_file, url_with_driver

ENVIRONMENT = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "ssl": "PGSSLMODE"}


class Dumper(Protocol):
    """One database."""

    @property
    def kind(self) -> Kind:
        """Its engine."""

    @property
    def staging(self) -> Path | None:
        """The folder in which its dumps are unpacked; None for any."""

    def require_present(self) -> None:
        """Raise ConfigurationError if there is no database to back up."""

    def require_absent(self) -> None:
        """Raise ConfigurationError if it is known without a connection that the database is not empty."""

    async def dump(self, to: Path) -> None:
        """Write a dump into a new file. Raises ConfigurationError."""

    async def load(self, dump: Path) -> None:
        """Fill the empty database, and record the restore. May change the dump. Raises ConfigurationError."""


def dumper_of(url: str) -> Dumper:
    """How the database of this URL is dumped. Raises ConfigurationError."""
    parsed = url_with_driver(url)
    if parsed.get_backend_name() == "sqlite":
        return SqliteFile(sqlite_file(parsed))
    return Postgres(url, _environment(parsed))


class SqliteFile:
    """A file, dumped by SQLite's backup call. A restore makes the whole file beside it, and links it in."""

    kind: Kind = "sqlite"

    def __init__(self, file: Path) -> None:
        self._file = file
        self.staging: Path | None = file.parent

    def require_present(self) -> None:
        if not self._file.is_file():
            raise ConfigurationError(f"There is no services' database at {self._file}.")

    def require_absent(self) -> None:
        """A journal that lies beside a new file would be read into it, so none may be left."""
        for left in (self._file, *(Path(f"{self._file}{suffix}") for suffix in ("-wal", "-shm", "-journal"))):
            if left.exists() and (left != self._file or left.stat().st_size > 0):
                raise ConfigurationError(
                    f"The services' database is not empty: there is {left}.",
                    next_step="Stop the services, and move it away.",
                )

    async def dump(self, to: Path) -> None:
        try:
            copy_database(self._file, to)
            _single_file(to)
        except sqlite3.Error as error:
            raise ConfigurationError(f"The services' database cannot be backed up: {error}.") from None

    async def load(self, dump: Path) -> None:
        database = Database(f"sqlite:///{dump}")
        try:
            await database.end_restore(int(time.time()))
        finally:
            await database.close()
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
        database = Database(self.url)
        try:
            await database.begin_restore()
            whole = ("--single-transaction", "--exit-on-error", "--no-owner", "--no-acl")
            await self._run("pg_restore", *whole, "--dbname=", str(dump))  # PGDATABASE names the database
            await database.end_restore(int(time.time()))
        finally:
            await database.close()

    async def _run(self, name: str, *words: str) -> None:
        call = [_program(name), "--no-password", *words]
        done = await asyncio.to_thread(
            subprocess.run, call, env=os.environ | self.environment, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, errors="replace", check=False,
        )  # fmt: skip
        if done.returncode:  # later lines may quote rows
            said = next((line for line in done.stderr.splitlines() if "error:" in line), f"status {done.returncode}")
            raise ConfigurationError(f"{name} failed: {said[:300]}.")


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise ConfigurationError(f"{name} is not installed.", next_step="Install PostgreSQL's client programs.")
    return found


def _environment(url: URL) -> dict[str, str]:
    """What PostgreSQL's programs read in place of the URL."""
    parts = {"host": url.host, "port": url.port, "user": url.username, "password": url.password}
    given = {name: str(value) for name, value in parts.items() if value is not None}
    given |= {name: value for name, value in url.query.items() if name in ENVIRONMENT and isinstance(value, str)}
    found = {ENVIRONMENT[name]: value for name, value in given.items()}
    return found | ({"PGDATABASE": url.database} if url.database else {})


def _single_file(file: Path) -> None:
    """Put everything into the file itself, with no journal beside it."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
