"""Migrations: databases of an earlier release are refused, or migrated without a loss."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from deepgrid.errors import ChainError, ConfigurationError
from deepgrid.services import schema
from deepgrid.services.files.tables import Bundle
from deepgrid.services.notify import subscription_table  # noqa: F401 - the same
from deepgrid.services.schema import NOTED_IN
from deepgrid.services.signing.request_signing import Domain
from deepgrid.services.storage import kept_rows, receipt_table, use_table  # noqa: F401 - their tables are compared, too
from deepgrid.services.storage.database import Database, Definition, Log, LogChunk, Table
from deepgrid.services.storage.grid_of_jobs import note_grid, require_grid
from tests.services.postgres_support import private_postgres

DATA = Path(__file__).parent / "data"
GRID = Domain(31337, "0x" + "11" * 20)
OTHER_GRIDS = (Domain(1, GRID.verifying_contract), Domain(GRID.chain_id, "0x" + "22" * 20))
ROWS = """
INSERT INTO grid_definition VALUES ('aa', '0xC', '\\x01', true, 7, NULL);
INSERT INTO grid_log VALUES (1, 3, 5, true, 9);
INSERT INTO grid_log_chunk VALUES (1, 3, 0, 5, '\\x02');
"""


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with private_postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
async def empty(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/services.sqlite"
    server: str = request.getfixturevalue("postgres")
    connection = await asyncpg.connect(server)
    await connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    await connection.close()
    return server


@pytest.fixture
async def old(empty: str) -> str:
    """URL of a database as 561a647 left it, with a definition and a log."""
    kind = empty.partition(":")[0]
    script = (DATA / f"schema-561a647-{kind}.sql").read_text() + ROWS
    if kind == "sqlite":
        with sqlite3.connect(empty.removeprefix("sqlite:///")) as file:
            file.executescript(script)
    else:
        connection = await asyncpg.connect(empty)
        await connection.execute(script)
        await connection.close()
    return empty


async def test_an_old_database_is_refused_and_migrated_without_a_loss(old: str) -> None:
    database = Database(old)
    with pytest.raises(ConfigurationError, match="an earlier release") as caught:
        await database.prepare()
    assert "dps services migrate" in caught.value.next_step
    assert "tables of this release" in await migrated(old)
    await database.prepare()
    with pytest.raises(ConfigurationError, match="keeps job 1, and the grid of the address book has 0 jobs") as caught:
        await note_grid(database, GRID, no_jobs)  # it was just deployed, and its jobs would be mixed with the old ones
    assert "a new, empty database (--database)" in caught.value.next_step
    assert not await names(database, GRID)
    await note_grid(database, GRID, one_job)
    assert await names(database, GRID)
    async with database.read() as session:
        assert await kept(session) == ("0xC", 5, None, None)
        assert await session.run_sync(lambda sync: differences(sync.connection())) == []
    await database.aclose()


async def test_files_of_an_earlier_release_keep_their_folder(empty: str) -> None:
    """Its name was the bundle's id."""
    database = Database(empty)

    def earlier(connection: Connection) -> None:
        settings = schema._config()
        settings.attributes["connection"] = connection
        command.upgrade(settings, "0011")

    async with database.write() as session:
        await (await session.connection()).run_sync(earlier)
        row = "INSERT INTO grid_bundle VALUES ('ab', '0xC', 'cd', 1, 1, NULL, NULL, 5, 6, 7, 8)"
        await session.execute(text(row))
    await database.prepare(migrate=True)
    async with database.read() as session:
        assert (await session.scalars(select(Bundle.folder))).one() == "ab"
    await database.aclose()


async def test_a_database_that_newer_code_migrated_is_refused(empty: str) -> None:
    database = Database(empty)
    await database.prepare()
    async with database.write() as session:
        await session.execute(text("UPDATE grid_schema SET version_num = '9999'"))
    for migrate in (False, True):
        with pytest.raises(ConfigurationError, match="a later release"):
            await database.prepare(migrate=migrate)
    await database.aclose()


async def test_two_processes_may_prepare_one_empty_postgresql(postgres: str) -> None:
    connection = await asyncpg.connect(postgres)
    await connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    await connection.close()
    databases = [Database(postgres) for _ in range(4)]
    await asyncio.gather(*(database.prepare() for database in databases))
    for database in databases:
        await database.aclose()


async def test_a_database_keeps_the_jobs_of_one_grid(empty: str) -> None:
    """New contracts count jobs from 1 again: a new job would get the receipts and files of an old one."""
    database = Database(empty)
    await database.prepare()
    for _ in range(2):
        await note_grid(database, GRID, no_jobs)
    for other in OTHER_GRIDS:
        with pytest.raises(
            ConfigurationError, match=f"of another grid: chain 31337, .* {GRID.verifying_contract}"
        ) as caught:
            await note_grid(database, other, no_jobs)
        assert "a new, empty database (--database)" in caught.value.next_step
    assert await names(database, GRID)
    await database.aclose()


async def test_a_chain_that_began_again_is_told(empty: str, caplog: pytest.LogCaptureFixture) -> None:
    """A test chain that starts from zero may have the same contracts at the same addresses, and job 1 once more."""
    database = Database(empty)
    await database.prepare()
    await note_grid(database, GRID, no_jobs)
    async with database.write() as session:
        session.add(Log(job_id=1, claimed_at=3, size=0, final=True, updated_at=9))

    async def silent() -> int:
        raise ChainError("The node does not answer.")

    for count_jobs in (one_job, silent):
        await note_grid(database, GRID, count_jobs)
    assert not caplog.records
    await note_grid(database, GRID, no_jobs)  # it is not refused, as the node may lag
    assert "database keeps job 1, and the chain has 0 jobs" in caplog.text
    await database.aclose()


async def test_of_two_grids_at_once_one_is_noted(postgres: str) -> None:
    connection = await asyncpg.connect(postgres)
    await connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    await connection.close()
    databases = [Database(postgres) for _ in range(4)]
    await databases[0].prepare()
    starts = [note_grid(database, (GRID, OTHER_GRIDS[0])[at % 2], no_jobs) for at, database in enumerate(databases)]
    ended = await asyncio.gather(*starts, return_exceptions=True)
    assert sorted(type(one).__name__ for one in ended) == ["ConfigurationError"] * 2 + ["NoneType"] * 2
    assert type(ended[0]) is type(ended[2])
    for database in databases:
        await database.aclose()


async def test_what_postgresql_refuses_is_one_sentence(postgres: str) -> None:
    """Its driver raises its own errors while it connects, for example for a wrong password."""
    database = Database(postgres.replace("/postgres?", "/missing?"))
    with pytest.raises(ConfigurationError, match="cannot be used"):
        await database.prepare()
    await database.aclose()


async def migrated(url: str) -> str:
    """Return the output of `dps services migrate`."""
    environment = os.environ | {"DEEPGRID_SERVICES_DATABASE": url}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "deepgrid.cli", "services", "migrate",
        env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


async def no_jobs() -> int:
    return 0


async def one_job() -> int:
    return 1


async def names(database: Database, grid: Domain) -> bool:
    """Return whether the database names this grid."""
    async with database.look() as connection:
        return await connection.run_sync(require_grid, grid)


async def kept(session: AsyncSession) -> tuple[str, int, int | None, int | None]:
    definition = (await session.scalars(select(Definition))).one()
    log, chunk = (await session.scalars(select(Log))).one(), (await session.scalars(select(LogChunk))).one()
    return definition.uploader, log.size, log.source, chunk.at_ns


def differences(connection: Connection) -> list[object]:
    """Return how the tables differ from the models."""
    options = {"compare_type": True, "version_table": NOTED_IN}
    return list(compare_metadata(MigrationContext.configure(connection, opts=options), Table.metadata))
