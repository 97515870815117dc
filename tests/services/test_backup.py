"""Backup and restore: everything comes back. Requests signed before the restore are refused."""

from __future__ import annotations

import stat
import tarfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import asyncpg
import pytest
from sqlalchemy.engine import URL, make_url

from deepgrid.errors import AccessDenied, ConfigurationError
from deepgrid.services.database_backup import Postgres, dumper_of
from deepgrid.services.signing.request_signing import WINDOW_S, Domain, sign
from deepgrid.services.signing.session_keys import CLOCK_SLACK_S, MAX_LIFETIME_S
from deepgrid.services.storage.vault import write_key
from tests.services.backup_support import Machine
from tests.services.postgres_support import private_postgres
from tests.services.support import (
    ACCOUNTS,
    DOMAIN,
    PATH,
    Grid,
    Start,
    a_job,
    client_of,
    push,
    session_key,
    starting,
)

OTHER_DOMAIN = Domain(DOMAIN.chain_id, "0x" + "44" * 20)
PASSWORD = "pass/word %41"


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with private_postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
async def machines(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Machine, Machine]:
    """The machine that is lost, and the new one."""
    if request.param == "sqlite":
        return Machine.at(tmp_path / "old"), Machine.at(tmp_path / "new")
    server = make_url(request.getfixturevalue("postgres"))
    connection = await asyncpg.connect(server.render_as_string())
    await connection.execute(f"CREATE ROLE owner LOGIN PASSWORD '{PASSWORD}'")
    for name in ("old", "new"):
        await connection.execute(f"CREATE DATABASE {name} OWNER owner")
    await connection.close()
    urls = [
        server.set(username="owner", password=PASSWORD, database=name).render_as_string(hide_password=False)
        for name in ("old", "new")
    ]
    return Machine.at(tmp_path / "old", urls[0]), Machine.at(tmp_path / "new", urls[1])


@pytest.fixture
async def start_new(tmp_path: Path) -> AsyncIterator[Start]:
    """Start services with the secret file of the new machine."""
    (tmp_path / "new").mkdir(exist_ok=True)
    async with starting(tmp_path / "new") as start_one:
        yield start_one


async def filled(grid: Grid) -> str:
    """Store a definition and a log. Returns the definition's hash."""
    definition_hash = await grid.customer.upload(a_job())
    grid.chain.put(1, definition_hash)
    assert (await push(grid.url, b"out", signed(grid, b"out"))).status_code == 200
    return definition_hash


def signed(grid: Grid, body: bytes, ahead_s: int = 0) -> dict[str, str]:
    return sign(ACCOUNTS["provider"], DOMAIN, "POST", PATH, body, int(grid.clock()) + ahead_s)


async def test_a_new_machine_serves_what_the_lost_one_stored(
    machines: tuple[Machine, Machine], start_new: Start, tmp_path: Path
) -> None:
    """The replayed request was accepted after the backup, so the backup does not know its nonce."""
    lost, new, archive = *machines, tmp_path / "backup.tar"
    async with AsyncExitStack() as stack:
        start = await stack.enter_async_context(starting(lost.folder))
        old = await start(database_url=lost.url)
        definition_hash = await filled(old)
        await lost.back_up(archive)  # the services run meanwhile
        used = signed(old, b"out", ahead_s=WINDOW_S - 5)  # from a machine whose clock is ahead
        assert (await push(old.url, b"out", used)).status_code == 200
    await new.restore(archive)
    with pytest.raises(ConfigurationError, match="not empty"):
        await new.restore(archive)
    assert not list(tmp_path.glob("**/.restore*")) + list(tmp_path.glob("**/.backup*"))

    with pytest.raises(ConfigurationError, match="the jobs of another grid"):
        await start_new(old.chain, database_url=new.url, domain=OTHER_DOMAIN)
    grid = await start_new(old.chain, database_url=new.url)
    for ahead_s in (0, WINDOW_S // 2, 2 * WINDOW_S - 10):
        grid.clock.ahead_s = ahead_s
        answer = await push(grid.url, b"out", used)
        assert answer.status_code == 503
        assert "restored from a backup, and takes requests again in" in answer.json()["error"]
        assert int(answer.headers["Retry-After"]) > 0
    grid.clock.ahead_s = 2 * WINDOW_S
    assert await grid.provider.fetch_definition(1, definition_hash) == a_job()
    assert (await grid.customer.read_log(1)).data == b"out"


async def test_sessions_of_the_time_before_are_refused(start: Start, start_new: Start, tmp_path: Path) -> None:
    """The key was revoked after the backup, and has the latest end that a session may have."""
    lost, new = Machine.at(tmp_path), Machine.at(tmp_path / "new")
    old = await start()
    old.chain.put(1, await filled(old))
    await lost.back_up(tmp_path / "backup.tar")
    stolen = session_key(lifetime_s=MAX_LIFETIME_S + CLOCK_SLACK_S - 5)
    async with client_of(old.url, stolen) as thief:
        await thief.read_log(1)
        await old.customer.revoke(stolen.session)
        with pytest.raises(AccessDenied, match="revoked"):
            await thief.read_log(1)
    await new.restore(tmp_path / "backup.tar")

    grid = await start_new(old.chain)
    grid.clock.ahead_s = 2 * WINDOW_S
    opened = session_key(now=int(grid.clock()))
    async with client_of(grid.url, stolen) as thief, client_of(grid.url, opened) as customer:
        with pytest.raises(AccessDenied, match="open one of full length"):
            await thief.read_log(1)
        assert (await customer.read_log(1)).data == b"out"


async def test_the_verbs_make_an_archive_that_nobody_else_can_read(start: Start, tmp_path: Path) -> None:
    machine, archive = Machine.at(tmp_path), tmp_path / "backup.tar"
    await filled(await start())
    assert "keep it as secret" in await machine.dps("backup", archive)
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    with tarfile.open(archive) as tar:
        assert tar.getnames() == ["manifest.json", "database.sqlite", "secret"]
        assert {member.mode for member in tar} == {0o600}
    assert "not empty" in await machine.dps("restore", archive, status=2)
    assert "Restored the backup" in await Machine.at(tmp_path / "new").dps("restore", archive)


async def test_the_secret_file_can_be_left_out(start: Start, tmp_path: Path) -> None:
    machine, new, archive = Machine.at(tmp_path), Machine.at(tmp_path / "new"), tmp_path / "backup.tar"
    await filled(await start())
    await machine.back_up(archive, without_secret=True)
    assert machine.secret.read_bytes().strip() not in archive.read_bytes()
    with pytest.raises(ConfigurationError, match="does not hold the secret file"):
        await new.restore(archive)
    write_key(new.secret, machine.secret.read_bytes())
    await new.restore(archive)


def test_a_password_reaches_the_programs_of_postgresql_as_it_is() -> None:
    url = URL.create("postgresql", "owner", PASSWORD, "db.example", 5433, "grid", {"ssl": "verify-full"})
    dumper = dumper_of(url.render_as_string(hide_password=False))
    assert isinstance(dumper, Postgres)
    assert dumper.environment == {
        "PGHOST": "db.example", "PGPORT": "5433", "PGUSER": "owner", "PGPASSWORD": PASSWORD, "PGDATABASE": "grid",
        "PGSSLMODE": "verify-full",
    }  # fmt: skip
    assert PASSWORD not in repr(dumper)
