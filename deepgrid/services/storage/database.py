"""The services' store: tables in a SQLite file or in PostgreSQL. A change of a table needs a step in `schema`.

Columns named `sealed` are encrypted. Times are unix seconds, offsets and sizes bytes.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import asyncpg
from sqlalchemy import BigInteger, Connection, Integer, LargeBinary, String, event, insert
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.pool import QueuePool

from deepgrid.errors import ConfigurationError
from deepgrid.services import schema
from deepgrid.services.storage.postgres_connection import DRIVER_ERRORS, NoConnection, connect

DRIVERS = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+asyncpg", "postgres": "postgresql+asyncpg"}


class Table(DeclarativeBase):
    """Base of the tables. Their names start with `grid_`, so they can share a database with other tables."""

    type_annotation_map = {int: BigInteger, str: String, bytes: LargeBinary}  # noqa: RUF012 - SQLAlchemy's way


class UsedNonce(Table):
    """The nonce of an accepted request, kept until the request expires."""

    __tablename__ = "grid_nonce"
    signer: Mapped[str] = mapped_column(primary_key=True)
    nonce: Mapped[bytes] = mapped_column(primary_key=True)
    expires_at: Mapped[int] = mapped_column(index=True)


class RevokedSession(Table):
    """A revoked session key, kept until its session ends. `key_hash` names the key as a key of this wallet."""

    __tablename__ = "grid_revoked_session"
    key_hash: Mapped[str] = mapped_column(primary_key=True)
    wallet: Mapped[str] = mapped_column(index=True)
    until: Mapped[int] = mapped_column(index=True)


class Definition(Table):
    """A job definition. `sealed` becomes null once its jobs are over. The uploader never changes."""

    __tablename__ = "grid_definition"
    definition_hash: Mapped[str] = mapped_column("location_hash", primary_key=True)
    uploader: Mapped[str] = mapped_column(index=True)
    sealed: Mapped[bytes | None]
    enable_logging: Mapped[bool]
    uploaded_at: Mapped[int]
    cold_seen_at: Mapped[int | None]


class UnownedDefinition(Table):
    """A definition that was submitted without a signature, until a job names it. `source` is the source address."""

    __tablename__ = "grid_unowned_definition"
    definition_hash: Mapped[str] = mapped_column(primary_key=True)
    source: Mapped[str] = mapped_column(index=True)
    sealed: Mapped[bytes]
    size: Mapped[int]
    enable_logging: Mapped[bool]
    stored_at: Mapped[int] = mapped_column(index=True)


class Use(Table):
    """A job of the uploader that names the definition on chain."""

    __tablename__ = "grid_use"
    definition_hash: Mapped[str] = mapped_column("location_hash", primary_key=True)
    job_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)


class ReleaseRecord(Table):
    """A release of a definition to a provider."""

    __tablename__ = "grid_release"
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    definition_hash: Mapped[str] = mapped_column("location_hash", index=True)
    job_id: Mapped[int]
    provider: Mapped[str]
    at: Mapped[int]


class Log(Table):
    """The output of one claim of a job. `size` counts all received bytes, including dropped ones.

    `source` is the position in the provider's file up to which the log accounts for it; null if it equals `size`.
    `left_out` counts the bytes of the file that the provider left out, `pending` those that it still has.
    """

    __tablename__ = "grid_log"
    job_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    claimed_at: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    size: Mapped[int]
    final: Mapped[bool]
    updated_at: Mapped[int] = mapped_column(index=True)
    source: Mapped[int | None]
    left_out: Mapped[int | None]
    pending: Mapped[int | None]


class LogChunk(Table):
    __tablename__ = "grid_log_chunk"
    job_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    claimed_at: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    offset: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    length: Mapped[int]
    sealed: Mapped[bytes]
    at_ns: Mapped[int | None] = mapped_column(default=time.time_ns)  # when it was stored


class NoticeRecord(Table):
    __tablename__ = "grid_notice"
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    job_id: Mapped[int] = mapped_column(index=True)
    at: Mapped[int] = mapped_column(index=True)
    author: Mapped[str]
    kind: Mapped[str]
    text: Mapped[str]


class Cursor(Table):
    """The position of a named reader."""

    __tablename__ = "grid_cursor"
    name: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[int]


class Restore(Table):
    """A restore of this database from a backup, and when it ended."""

    __tablename__ = "grid_restored"
    at: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)


class Database:
    """Sessions of the store. Driver errors never show the values of a statement."""

    def __init__(self, url: str) -> None:
        parsed = url_with_driver(url)
        self._one_writer: asyncio.Lock | None = None
        if parsed.get_backend_name() == "sqlite":
            _private_file(parsed)
            self._one_writer = asyncio.Lock()  # a second writer of SQLite would fail instead of waiting
        shared = self._one_writer is None
        own = {"async_creator_fn": connect} if shared else {}
        self._engine = create_async_engine(parsed, hide_parameters=True, pool_pre_ping=shared, connect_args=own)
        if self._one_writer:
            event.listen(self._engine.sync_engine, "connect", _sqlite_settings)
        self._sessions = async_sessionmaker(self._engine, expire_on_commit=False)

    @property
    def is_shared(self) -> bool:
        """Whether several processes may use the database: PostgreSQL, not a SQLite file."""
        return self._one_writer is None

    @asynccontextmanager
    async def driver_connection(self) -> AsyncIterator[asyncpg.Connection]:
        """Yield a connection of PostgreSQL's driver. It never returns to the pool."""
        async with self._engine.connect() as connection:
            driver = (await connection.get_raw_connection()).driver_connection
            assert isinstance(driver, asyncpg.Connection)
            try:
                yield driver
            finally:
                await connection.invalidate()
                driver.terminate()

    async def prepare(self, *, migrate: bool = False) -> None:
        """Create the tables of an empty database. Refuse tables of an earlier release, or change them if `migrate`.

        Raises ConfigurationError, even if the database cannot be used.
        """

        def change(connection: Connection) -> None:
            schema.require_whole(connection)
            if migrate or schema.is_empty(connection):
                schema.migrate(connection)
            schema.require_current(connection)

        with _usable():
            async with self._engine.begin() as connection:
                await connection.run_sync(change)

    async def last_step(self) -> str:
        """Return the last step of the schema. Raises ConfigurationError if this release cannot back the database up."""
        async with self.look() as connection:
            return await connection.run_sync(schema.last_step)

    async def begin_restore(self) -> None:
        """Mark the empty database. Until `end_restore` no process serves it. Raises ConfigurationError."""
        with _usable():
            async with self._engine.begin() as connection:
                await connection.run_sync(schema.begin_restore)

    async def end_restore(self, now: int) -> None:
        """Migrate the restored tables, and record the restore, in one transaction. Raises ConfigurationError."""
        with _usable():
            async with self._engine.begin() as connection:
                await connection.run_sync(schema.end_restore)
                await connection.execute(insert(Restore).values(at=now))

    @asynccontextmanager
    async def look(self) -> AsyncIterator[AsyncConnection]:
        """Yield a connection to look at a database that may not be prepared.

        Raises ConfigurationError, even if the database cannot be used.
        """
        with _usable():
            async with self._engine.connect() as connection:
                yield connection

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncSession]:
        async with self._sessions() as session:
            yield session

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncSession]:
        """Yield a transaction. It is committed at the end and rolled back on an exception."""
        async with self._one_writer or nullcontext(), self._sessions.begin() as session:
            yield session

    @property
    def connections(self) -> int:
        """How many connections are in use."""
        pool = self._engine.pool
        return pool.checkedout() if isinstance(pool, QueuePool) else 0

    async def aclose(self) -> None:
        """Close all connections; for `contextlib.aclosing`."""
        await self._engine.dispose()


def url_with_driver(url: str) -> URL:
    """Return the URL with the driver that we use, which calls `sslmode` of other programs `ssl`.

    Raises ConfigurationError.
    """
    try:
        parsed = make_url(url)
        query = {"ssl" if name == "sslmode" else name: given for name, given in parsed.query.items()}
        return parsed.set(drivername=DRIVERS[parsed.get_backend_name()], query=query)
    except (SQLAlchemyError, KeyError, ValueError):
        raise ConfigurationError(
            "The services' database URL is not usable.", next_step="Use sqlite:///FILE or postgresql://..."
        ) from None


@contextmanager
def _usable() -> Iterator[None]:
    """Raises ConfigurationError when the database fails."""
    try:
        yield
    except (SQLAlchemyError, *DRIVER_ERRORS) as error:
        what = str(error) if isinstance(error, NoConnection) else type(error).__name__
        raise ConfigurationError(f"The services' database cannot be used ({what}).") from None


def file_of(url: str) -> Path | None:
    """Return the SQLite file of a database's URL; None for PostgreSQL. Raises ConfigurationError for another URL."""
    parsed = url_with_driver(url)
    return Path(parsed.database or "") if parsed.get_backend_name() == "sqlite" else None


def sqlite_file(url: URL) -> Path:
    """Return the file of this SQLite database. Raises ConfigurationError for one in memory."""
    if not url.database or url.database == ":memory:":
        raise ConfigurationError("The services' database needs a file.", next_step="Use sqlite:///FILE.")
    return Path(url.database)


def _private_file(url: URL) -> None:
    path = sqlite_file(url)
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def _sqlite_settings(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")  # a used nonce must not come back after a power cut
    cursor.execute("PRAGMA busy_timeout=10000")
    cursor.close()
