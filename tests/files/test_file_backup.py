"""A backup of a role's files is private, finds damage, and never replaces existing files."""

from __future__ import annotations

import sqlite3
import stat
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from deepgrid.errors import ConfigurationError
from deepgrid.files.file_backup import Restore, back_up_files, copy_database, state_files


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder with a key, a state folder with a lock and a journal, and an open database."""
    home = tmp_path / "a machine?" / "100 %"
    (home / "state").mkdir(parents=True)
    (home / "key").write_text("0x42\n")
    (home / "state" / "alpha.logs.json").write_text("[]")
    (home / "state" / "key.lease").touch()
    (home / "state" / ".alpha.logs.json.k3j2").touch()
    (home / "state" / ".cache").mkdir()
    (home / "state" / ".cache" / "page").touch()
    (home / "state" / "link").symlink_to("/etc/passwd")
    return home


def unpacked(archive: Path, folder: Path) -> Restore:
    folder.mkdir()
    return Restore(archive, folder, "provider")


def test_a_lost_machine_gets_its_files_back(machine: Path, tmp_path: Path) -> None:
    archive = tmp_path / "backup.tar"
    with closing(sqlite3.connect(machine / "state" / "rounds.sqlite")) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE refusals (job INTEGER)")
        database.execute("INSERT INTO refusals VALUES (7)")
        database.commit()  # in the journal only: the database is open
        files = [machine / "key", *state_files(machine / "state")]
        assert [file.name for file in files] == ["key", "alpha.logs.json", "rounds.sqlite"]
        back_up_files(archive, "provider", "alpha", files)
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    machine.parent.rename(tmp_path / "lost")
    restore = unpacked(archive, tmp_path / "staging")
    assert (restore.missing, restore.same) == (files, [])
    restore.apply()
    assert (machine / "key").read_text() == "0x42\n"
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    folders = (machine.parent, machine, machine / "state")
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}
    assert sorted(file.name for file in machine.rglob("*") if file.is_file()) == sorted(file.name for file in files)
    with closing(sqlite3.connect(machine / "state" / "rounds.sqlite")) as database:
        assert database.execute("SELECT job FROM refusals").fetchall() == [(7,)]


def test_a_missing_state_folder_is_no_empty_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: No such file or directory"):
        state_files(tmp_path / "state")


def test_a_file_with_another_content_stays(machine: Path, tmp_path: Path) -> None:
    archive = tmp_path / "backup.tar"
    journal = machine / "state" / "alpha.logs.json"
    back_up_files(archive, "provider", "alpha", [machine / "key", journal])
    journal.unlink()
    assert unpacked(archive, tmp_path / "first").same == [machine / "key"]
    (machine / "key").write_text("0x43\n")
    with pytest.raises(ConfigurationError, match="exist with different content: .*key. Move them away"):
        unpacked(archive, tmp_path / "second")
    assert not journal.exists()


def test_a_dangling_link_in_place_of_a_file_is_not_written_through(machine: Path, tmp_path: Path) -> None:
    archive = tmp_path / "backup.tar"
    back_up_files(archive, "provider", "alpha", [machine / "key"])
    (machine / "key").unlink()
    (machine / "key").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match="exist with different content"):
        unpacked(archive, tmp_path / "staging")
    assert not (tmp_path / "elsewhere").exists()


def test_another_role_damage_and_foreign_archives_are_refused(machine: Path, tmp_path: Path) -> None:
    archive = tmp_path / "backup.tar"
    back_up_files(archive, "operator", "grid", [machine / "key"])
    with pytest.raises(ConfigurationError, match="another role: operator"):
        unpacked(archive, tmp_path / "role")
    archive.write_bytes(archive.read_bytes().replace(b"0x42", b"0x99"))
    with pytest.raises(ConfigurationError, match="checksums"):
        unpacked(archive, tmp_path / "damaged")
    with tarfile.open(archive, "w") as tar:
        tar.add(machine / "key", "../key")
    with pytest.raises(ConfigurationError, match="has a member that no backup has"):
        unpacked(archive, tmp_path / "foreign")
    archive.write_bytes(b"")
    with pytest.raises(ConfigurationError, match="is not a backup"):
        unpacked(archive, tmp_path / "empty")


def test_a_backup_replaces_no_other_one_and_names_what_it_cannot_read(machine: Path, tmp_path: Path) -> None:
    archive = tmp_path / "backup.tar"
    with pytest.raises(ConfigurationError, match="missing: No such file"):
        back_up_files(archive, "provider", "alpha", [machine / "missing"])
    assert list(tmp_path.glob("*backup*")) == []
    with pytest.raises(ConfigurationError, match="There is no folder .*absent"):
        back_up_files(tmp_path / "absent" / "backup.tar", "provider", "alpha", [machine / "key"])
    archive.touch()
    with pytest.raises(ConfigurationError, match="exists"):
        back_up_files(archive, "provider", "alpha", [machine / "key"])


def test_a_copied_database_leaves_no_journal_beside_it(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "rounds.sqlite")) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE refusals (job INTEGER)")
    copy_database(tmp_path / "rounds.sqlite", tmp_path / "copy")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["copy", "rounds.sqlite"]
    assert stat.S_IMODE((tmp_path / "copy").stat().st_mode) == 0o600


def test_a_missing_database_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be copied"):
        back_up_files(tmp_path / "backup.tar", "operator", "main", [tmp_path / "rounds.sqlite"])
    assert list(tmp_path.iterdir()) == []
