"""A restore changes nothing unless the archive is whole, of this grid and readable, and the database is empty."""

from __future__ import annotations

import asyncio
import io
import shutil
import sqlite3
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deepgrid.errors import ConfigurationError
from deepgrid.files.file_backup import MANIFEST, pack
from deepgrid.services.database_backup import DUMPS, SECRET, unpack_backup
from deepgrid.services.signing.request_signing import Domain
from deepgrid.services.storage.database import Database, Definition
from deepgrid.services.storage.grid_of_jobs import note_grid
from deepgrid.services.storage.vault import Vault
from tests.services.backup_support import BOOK, Machine
from tests.services.support import LATER_TABLES, rich_chain


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a machine with a definition in its database, and the folder of its backup."""
    machine = Machine.at(tmp_path_factory.mktemp("made") / "machine")

    async def fill() -> None:
        database = Database(machine.url)
        await database.prepare()
        sealed = Vault.open(machine.secret).seal(b"definition")
        async with database.write() as session:
            session.add(
                Definition(definition_hash="aa", uploader="0xC", sealed=sealed, enable_logging=True, uploaded_at=1)
            )
        await database.aclose()
        await machine.back_up(machine.folder / "backup.tar")

    asyncio.run(fill())
    return machine.folder


@pytest.fixture
def machine(made: Path, tmp_path: Path) -> Machine:
    shutil.copytree(made, tmp_path / "old")
    return Machine.at(tmp_path / "old")


@pytest.fixture
def archive(machine: Machine) -> Path:
    return machine.folder / "backup.tar"


@pytest.fixture
def new(tmp_path: Path) -> Machine:
    return Machine.at(tmp_path / "new")


def changed(archive: Path, **fields: Any) -> Path:
    """Return the archive with other fields in its manifest."""
    folder = archive.with_suffix(".parts")
    folder.mkdir()
    manifest = unpack_backup(archive, folder).model_copy(update=fields)
    archive.unlink()
    pack(archive, manifest, [folder / name for name in manifest.members])
    return archive


async def refused(machine: Machine, archive: Path, sentence: str, **others: Any) -> None:
    """A refused restore changes nothing."""
    before = {file: file.read_bytes() for file in machine.folder.iterdir()}
    with pytest.raises(ConfigurationError, match=sentence):
        await machine.restore(archive, BOOK.model_copy(update=others))
    assert {file: file.read_bytes() for file in machine.folder.iterdir()} == before


@pytest.mark.parametrize(
    ("others", "sentence"),
    [
        ({"chain_id": 1}, "of chain 31337, the address book of 1"),
        ({"meta_scheduler": "0x" + "44" * 20}, "another meta_scheduler"),
        ({"credit": "0x" + "44" * 20}, "another credit"),
        ({"provider_manager": "0x" + "44" * 20}, "another provider_manager"),
    ],
)
async def test_a_backup_of_another_grid(archive: Path, new: Machine, others: dict[str, Any], sentence: str) -> None:
    await refused(new, archive, sentence, **others)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"schema_step": "9999"}, "a later release"),
        ({"kind": "postgresql"}, "checksums"),
        ({"members": {DUMPS["sqlite"]: "0" * 64}}, "checksums"),
        ({"made_at": int(time.time()) + 3600}, "clock"),
    ],
)
async def test_a_manifest_that_does_not_fit(archive: Path, new: Machine, fields: dict[str, Any], sentence: str) -> None:
    await refused(new, changed(archive, **fields), sentence)


def flipped(content: bytes) -> bytes:
    """Return the database with one wrong bit."""
    place = content.index(b"SQLite format 3") + 5000
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def with_member(name: str, kind: bytes = tarfile.REGTYPE) -> Callable[[bytes], bytes]:
    def added(content: bytes) -> bytes:
        file = io.BytesIO(content)
        with tarfile.open(fileobj=file, mode="a") as tar:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, "/etc/passwd"
            tar.addfile(entry)
        return file.getvalue()

    return added


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (flipped, "checksums"),
        (lambda content: content[: len(content) // 2], "a part of it is missing"),
        (lambda _: b"", "a part of it is missing"),
        (lambda _: b"no archive" * 100, "is not a backup"),
        (with_member("../outside"), "no backup has"),
        (with_member("extra"), "no backup has"),
        (with_member(SECRET), "no backup has"),
        (with_member(DUMPS["postgresql"], tarfile.SYMTYPE), "no backup has"),
        (with_member(DUMPS["postgresql"]), "checksums"),
    ],
    ids=["bit", "cut", "empty", "noise", "outside", "extra", "twice", "link", "unnamed"],
)
async def test_a_damaged_archive(archive: Path, new: Machine, damage: Callable[[bytes], bytes], sentence: str) -> None:
    archive.write_bytes(damage(archive.read_bytes()))
    await refused(new, archive, sentence)


async def test_a_database_that_is_not_empty(archive: Path, machine: Machine) -> None:
    with pytest.raises(ConfigurationError, match="not empty"):
        await machine.restore(archive)


async def test_a_journal_that_was_left_beside_the_database(archive: Path, new: Machine) -> None:
    """SQLite would read it into the restored file."""
    (new.folder / "services.sqlite-wal").write_bytes(b"left")
    await refused(new, archive, "there is .*-wal")


async def test_another_secret_file(archive: Path, new: Machine, machine: Machine, tmp_path: Path) -> None:
    Vault.open(new.secret)
    await refused(new, archive, "does not match the backup")
    machine.secret.unlink()
    Vault.open(machine.secret)
    with pytest.raises(ConfigurationError, match="another secret file"):
        await machine.back_up(tmp_path / "unreadable.tar")
    assert not (tmp_path / "unreadable.tar").exists()


async def test_a_database_of_another_grid_is_not_backed_up(machine: Machine, tmp_path: Path) -> None:
    """The manifest would name the wrong grid."""
    database = Database(machine.url)
    await note_grid(database, Domain(BOOK.chain_id, "0x" + "44" * 20), rich_chain().job_count)
    await database.aclose()
    with pytest.raises(ConfigurationError, match="the jobs of another grid"):
        await machine.back_up(tmp_path / "other.tar")
    assert not (tmp_path / "other.tar").exists()


async def test_an_older_backup_is_migrated(machine: Machine, new: Machine, tmp_path: Path) -> None:
    with sqlite3.connect(machine.folder / "services.sqlite") as file:
        for table in LATER_TABLES:
            file.execute(f"DROP TABLE {table}")
        file.executescript("UPDATE grid_schema SET version_num = '0002'")
    assert (await machine.back_up(tmp_path / "old.tar")).schema_step == "0002"
    await new.restore(tmp_path / "old.tar")
    database = Database(new.url)
    await database.prepare()
    await database.aclose()


async def test_half_of_a_restore_is_not_served(new: Machine) -> None:
    database = Database(new.url)
    await database.begin_restore()
    for migrate in (False, True):
        with pytest.raises(ConfigurationError, match="has not finished"):
            await database.prepare(migrate=migrate)
    await database.begin_restore()  # it may be repeated while nothing is loaded
    await database.aclose()


def test_the_manifest_names_each_member(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    manifest = unpack_backup(archive, tmp_path / "parts")
    assert {file.name for file in (tmp_path / "parts").iterdir()} == {MANIFEST, *manifest.members}
    assert (manifest.chain_id, manifest.schema_step, manifest.kind) == (BOOK.chain_id, "0012", "sqlite")
