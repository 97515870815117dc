"""All findings on the services: this machine and its database here, what others reach in `public_checks`."""

from __future__ import annotations

import asyncio
import shutil
import stat
import time
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

from sqlalchemy import Connection, func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from deepgrid.chain.book import AddressBook
from deepgrid.chain.chain_findings import examine_node, judge_clock, judge_head
from deepgrid.chain.client import Chain
from deepgrid.errors import GridError
from deepgrid.findings import Finding, Level
from deepgrid.services import schema
from deepgrid.services.app import ServicesSettings
from deepgrid.services.doctor.public_checks import examine_front, examine_metrics, examine_proxy, examine_sockets
from deepgrid.services.script_check import require_shellcheck
from deepgrid.services.signing.request_signing import WINDOW_S, Domain
from deepgrid.services.storage.database import Database, Definition, Restore, file_of
from deepgrid.services.storage.grid_of_jobs import newest_job, require_grid
from deepgrid.services.storage.vault import Vault

ANSWER_WITHIN_S = 30.0
MAX_CLOCK_SKEW_S = 5.0
LOW_DISK_MIB, FULL_DISK_MIB = 1024, 64
MIB = 1024**2
BEGAN_AGAIN = (
    "Wait if the node lags. If the chain began again, give a new, empty database (--database) and a new place for files"
    " (--files): new jobs would get the receipts and files of old ones with their numbers."
)


async def examine_services(settings: ServicesSettings, proxy_config: Path | None = None) -> list[Finding]:
    """Return all findings, one per subject. `proxy_config` is nginx's file. Creates no file and no table."""
    machine = [_programs(), _secret(settings.secret_file), examine_sockets(settings)]
    try:
        book = AddressBook.load(settings.book)
    except GridError as error:
        here = [*machine, *await examine_store(settings, None)]
        return [*here, Finding.of("book", error), *await examine_metrics(settings.metrics_port)]
    chain, jobs = await _chain(book)
    here = [*machine, *await examine_store(settings, Domain(book.chain_id, book.meta_scheduler), jobs)]
    parts = (examine_front(book), examine_metrics(settings.metrics_port))
    proxy = await examine_proxy(book, settings.sockets, proxy_config)
    return [*here, proxy, *chain, *(finding for findings in await asyncio.gather(*parts) for finding in findings)]


async def _chain(book: AddressBook) -> tuple[list[Finding], int | None]:
    """Return the findings on the chain, and how many jobs it ever had, if it answers."""
    try:
        async with await Chain.connect(book) as chain:
            head = await chain.head()
            lacks = await examine_node(chain, book.first_block)
            jobs = await chain.job_count()
    except GridError as error:
        return [Finding.of("chain", error)], None
    return [judge_head(book, head), *lacks, judge_clock(head.timestamp)], jobs


def _programs() -> Finding:
    if shutil.which("bash") is None:
        return Finding("programs", Level.BAD, "bash is not installed.", "Install the package bash.")
    return _unless_refused("programs", require_shellcheck, "bash and shellcheck are there, which check each script.")


def _secret(path: Path) -> Finding:
    if not path.exists():
        step = "The services make a new one. If their database has data already, restore the file from the backup."
        return Finding("secret", Level.WARNING, f"There is no secret file {path}.", step)
    return _unless_refused("secret", lambda: Vault.open(path), f"{path} holds a key, which only its owner may read.")


def _unless_refused(subject: str, check: Callable[[], object], good: str) -> Finding:
    try:
        check()
    except GridError as error:
        return Finding.of(subject, error)
    return Finding(subject, Level.GOOD, good)


async def examine_store(settings: ServicesSettings, grid: Domain | None, jobs: int | None = None) -> list[Finding]:
    """Return the findings on the database. Without a `grid`, whose jobs it keeps is not checked.

    `jobs` is how many jobs the chain ever had, if that is known.
    """
    try:
        file = file_of(settings.database_url)
        if file is None:
            return await _look(settings, grid, jobs)
        if not file.exists():
            words = f"There is no database {file} yet."
            step = "dps services serve makes it. If there was one, restore it from the backup."
            return [Finding("database", Level.WARNING, words, step)]
        return [*await _look(settings, grid, jobs), *_file(file)]
    except GridError as error:
        return [Finding.of("database", error)]


async def _look(settings: ServicesSettings, grid: Domain | None, jobs: int | None) -> list[Finding]:
    try:
        async with (
            asyncio.timeout(ANSWER_WITHIN_S),
            aclosing(Database(settings.database_url)) as database,
            database.look() as connection,
        ):
            if await connection.run_sync(schema.is_empty):
                return [Finding("database", Level.GOOD, "It is empty: dps services serve makes its tables.")]
            await connection.run_sync(schema.require_current)
            found = [Finding("database", Level.GOOD, "It answers, and has the tables of this release.")]
            found += [await connection.run_sync(_grid, grid, jobs)] if grid else []
            found.append(await _check_secret_file(connection, settings.secret_file))
            found += await _check_restore(connection)
            return found + (await _server(connection) if database.is_shared else [])
    except TimeoutError:
        words = f"The services' database does not answer within {ANSWER_WITHIN_S:.0f} s."
        return [Finding("database", Level.BAD, words, "Check whether its server runs, and whether locks block it.")]


def _grid(connection: Connection, grid: Domain, jobs: int | None) -> Finding:
    """Return whether the database keeps the jobs of this grid."""
    try:
        if require_grid(connection, grid):
            if jobs is not None and (newest := newest_job(connection)) > jobs:
                words = f"The database keeps job {newest}, and the chain has {jobs} jobs."
                return Finding("grid", Level.WARNING, words, BEGAN_AGAIN)
            return Finding("grid", Level.GOOD, "The database keeps the jobs of this grid.")
    except GridError as error:
        return Finding.of("grid", error)
    words = "The database does not name its grid yet. The next start of the services notes that of the address book."
    return Finding("grid", Level.WARNING, words, "If its jobs are of other contracts, give a new, empty database.")


async def _check_secret_file(connection: AsyncConnection, secret_file: Path) -> Finding:
    """Return whether the newest definition can be read with the secret file."""
    newest = select(Definition.sealed).where(Definition.sealed.is_not(None)).order_by(Definition.uploaded_at.desc())
    sealed = (await connection.execute(newest.limit(1))).scalar()
    if sealed is None:
        return Finding("sealed", Level.GOOD, "The database holds no definition now.")
    step = "Restore the secret file that belongs to the database from the backup."
    if not secret_file.exists():
        return Finding("sealed", Level.BAD, "The secret file of the database's definitions is missing.", step)
    try:
        Vault.open(secret_file).unseal(sealed)
    except GridError as error:
        return Finding("sealed", Level.BAD, error.message, error.next_step or step)
    return Finding("sealed", Level.GOOD, "The secret file reads the newest definition.")


async def _check_restore(connection: AsyncConnection) -> list[Finding]:
    """Return whether the services still refuse requests after a restore from a backup."""
    at = (await connection.execute(select(func.max(Restore.at)))).scalar()
    left_s = (at or 0) + WINDOW_S - int(time.time())
    if left_s <= 0:
        return []
    words = f"The database was restored from a backup. Signed requests are refused for {left_s} s more."
    return [Finding("restore", Level.WARNING, words, "Wait. Clients repeat their requests.")]


async def _server(connection: AsyncConnection) -> list[Finding]:
    """Return the clock of PostgreSQL's machine, and the size of the database."""
    before = time.time()
    asked = text("select extract(epoch from clock_timestamp()), pg_database_size(current_database())")
    clock, size = (await connection.execute(asked)).one()
    after, there = time.time(), float(clock)
    off_s = max(there - after, before - there, 0.0)  # the time that the answer took is no skew
    words = f"The database's clock differs from this machine's by {off_s:.0f} s."
    level = Level.WARNING if off_s > MAX_CLOCK_SKEW_S else Level.GOOD
    step = "Run an NTP client on both machines." if level is Level.WARNING else ""
    return [Finding("clock", level, words, step), Finding("size", Level.GOOD, f"The database has {size // MIB} MiB.")]


def _file(file: Path) -> list[Finding]:
    """Return the mode of the SQLite file, and the free space of its disk."""
    mode, size = stat.S_IMODE(file.stat().st_mode), file.stat().st_size // MIB
    found = []
    if mode & 0o077:
        found.append(
            Finding("file", Level.BAD, f"Others may read {file} (mode {mode:04o}).", f"Run `chmod 600 {file}`.")
        )
    free = shutil.disk_usage(file.absolute().parent).free // MIB
    words = f"The database has {size} MiB, and its disk {free} MiB free."
    if free < LOW_DISK_MIB:
        level = Level.BAD if free < FULL_DISK_MIB else Level.WARNING
        return [*found, Finding("size", level, words, "Free space on this disk, or move the database.")]
    return [*found, Finding("size", Level.GOOD, words)]
