"""The grid's PostgreSQL, a real server: it is private, and works at any place of the checkout."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from deployments.onemachine.daemons import postgres as module
from deployments.onemachine.daemons.ports import PortBook
from deployments.onemachine.daemons.postgres import Postgres
from deployments.onemachine.daemons.processes import ProcessTable
from tests.machines.manual import commands
from tests.waiting import wait_until

NEVER_REAPING = "import subprocess, sys, time; child = subprocess.Popen(sys.argv[1:]); time.sleep(300)"


@pytest.fixture
def postgres(tmp_path: Path, table: ProcessTable) -> Postgres:
    """A server that is not started, below a folder that only its owner may enter, like /root."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    return Postgres(closed / "postgres", PortBook(tmp_path / "ports.json").port("postgres"))


def start(postgres: Postgres, table: ProcessTable) -> None:
    postgres.prepare()
    table.start(postgres.daemon())
    table.wait_ready(postgres.daemon())


def ask(postgres: Postgres, database: str, question: Callable[[asyncpg.Connection], Awaitable[Any]]) -> Any:
    async def session() -> Any:
        connection = await asyncpg.connect(postgres.url(database).replace("+asyncpg", ""))
        try:
            return await question(connection)
        finally:
            await connection.close()

    return asyncio.run(session())


def test_it_serves_below_a_closed_folder_and_keeps_its_data(postgres: Postgres, table: ProcessTable) -> None:
    start(postgres, table)
    postgres.create_database("books")
    postgres.create_database("books")
    ask(postgres, "books", lambda db: db.execute("CREATE TABLE book (title text); INSERT INTO book VALUES ('Ulysses')"))
    table.stop("postgres")
    start(postgres, table)
    assert ask(postgres, "books", lambda db: db.fetchval("SELECT title FROM book")) == "Ulysses"


def test_prefect_reads_without_the_jit_compiler(postgres: Postgres, table: ProcessTable) -> None:
    """With it, the query for the diagram of a run took 7 to 17 s, and Prefect answered with HTTP 500."""
    start(postgres, table)
    ask(postgres, "postgres", lambda db: db.execute("CREATE DATABASE older"))
    for name in ("older", "prefect"):
        postgres.create_database(name)
        assert ask(postgres, name, lambda db: db.fetchval("SHOW jit")) == "off"


@pytest.mark.parametrize("section", ["On the operator's machine", "On a provider's machine"])
def test_so_does_a_prefect_that_was_installed_by_the_page(
    section: str, postgres: Postgres, table: ProcessTable
) -> None:
    start(postgres, table)
    (step,) = (block for block in commands("docs/how-to/install.md", section) if "createdb" in block)
    lines = [line.replace("runuser -l postgres", "sh") for line in step.splitlines() if "-l postgres" in line]
    url = urlsplit(postgres.url("postgres"))
    admin = {"PGHOST": url.hostname, "PGPORT": url.port, "PGUSER": url.username, "PGPASSWORD": url.password}
    env = {**os.environ, **{name: str(value) for name, value in admin.items()}}
    subprocess.run(["sh", "-ec", "\n".join(lines)], env=env, check=True)
    assert ask(postgres, "prefect", lambda db: db.fetchval("SHOW jit")) == "off"


def test_it_comes_back_after_kill_9(postgres: Postgres, table: ProcessTable) -> None:
    start(postgres, table)
    table.stop("postgres", signal.SIGKILL)
    start(postgres, table)
    assert ask(postgres, "postgres", lambda db: db.fetchval("SELECT 1")) == 1


def test_it_comes_back_while_a_child_of_the_killed_one_is_slow_to_leave(
    postgres: Postgres, table: ProcessTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(postgres, table)
    pid = table.pid("postgres")
    child = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
    os.kill(child, signal.SIGSTOP)
    table.stop("postgres", signal.SIGKILL)
    waited = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:  # it does not end by itself
            os.kill(child, signal.SIGCONT)
        time.sleep(seconds)

    monkeypatch.setattr(module, "time", SimpleNamespace(sleep=pause, monotonic=time.monotonic))
    start(postgres, table)
    assert len(waited) >= 3
    assert table.alive("postgres")


def test_a_lock_of_a_zombie_is_no_obstacle(postgres: Postgres, table: ProcessTable) -> None:
    """A killed server that its parent never reaped, as can happen in a container, once blocked the next start."""
    postgres.prepare()
    parent = subprocess.Popen([sys.executable, "-c", NEVER_REAPING, *postgres.daemon().argv])
    try:
        wait_until(postgres.daemon().ready)
        lock = postgres.folder / "data" / "postmaster.pid"
        zombie = int(lock.read_text().split()[0])
        os.kill(zombie, signal.SIGKILL)
        wait_until(lambda: ") Z" in Path(f"/proc/{zombie}/stat").read_text())
        start(postgres, table)
        assert table.alive("postgres")
    finally:
        parent.kill()
        parent.wait()


def test_a_lock_that_names_somebody_elses_process_is_no_obstacle(postgres: Postgres, table: ProcessTable) -> None:
    start(postgres, table)
    lock = postgres.folder / "data" / "postmaster.pid"
    text = lock.read_text()
    table.stop("postgres")
    lock.write_text(text.replace(text.split()[0], str(os.getpid()), 1))
    start(postgres, table)
    assert table.alive("postgres")


def test_an_interrupted_first_start_is_begun_again(postgres: Postgres, table: ProcessTable) -> None:
    (postgres.folder / "draft").mkdir(parents=True)
    (postgres.folder / "draft" / "PG_VERSION").write_text("15\n")
    start(postgres, table)
    assert ask(postgres, "postgres", lambda db: db.fetchval("SELECT 1")) == 1


def test_it_is_private(postgres: Postgres, table: ProcessTable) -> None:
    start(postgres, table)
    assert ask(postgres, "postgres", lambda db: db.fetchval("SHOW listen_addresses")) == "127.0.0.1"
    assert (postgres.folder / "password").stat().st_mode & 0o077 == 0
    password = (postgres.folder / "password").read_text()
    assert password not in " ".join(postgres.daemon().argv)
    with pytest.raises(asyncpg.InvalidPasswordError):
        ask_with_wrong_password(postgres)


def ask_with_wrong_password(postgres: Postgres) -> None:
    asyncio.run(asyncpg.connect(host="127.0.0.1", port=postgres.port, user="postgres", password="guess"))
