"""A file is whole or absent, only its owner can read it, and no draft of it is left."""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
from pathlib import Path

import pytest

from deepgrid.files.private_files import (
    PIECE_BYTES,
    copy_private,
    create_file,
    draft_of,
    replace_file,
    unwritable_part,
    write_json,
)


def mode_of(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def test_a_replaced_file_is_private_whatever_it_was(tmp_path: Path) -> None:
    file = tmp_path / "settings"
    file.write_bytes(b"old, and longer")
    file.chmod(0o644)
    replace_file(file, b"new")
    assert (file.read_bytes(), mode_of(file)) == (b"new", 0o600)
    assert list(tmp_path.iterdir()) == [file]


def test_another_mode_holds_under_any_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        replace_file(tmp_path / "unit", b"", 0o644)
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "unit") == 0o644


def test_a_failed_write_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    file = tmp_path / "settings"
    replace_file(file, b"old")
    with pytest.raises(RuntimeError), draft_of(file) as draft:
        draft.write(b"a part")
        raise RuntimeError
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_that_cannot_be_replaced_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / "settings").mkdir()
    with pytest.raises(OSError, match="directory"):
        replace_file(tmp_path / "settings", b"new")
    assert list(tmp_path.iterdir()) == [tmp_path / "settings"]


def test_a_created_file_replaces_nothing(tmp_path: Path) -> None:
    file = tmp_path / "key"
    create_file(file, b"first")
    with pytest.raises(FileExistsError):
        create_file(file, b"second")
    assert (file.read_bytes(), mode_of(file)) == (b"first", 0o600)
    assert list(tmp_path.iterdir()) == [file]


def test_a_dangling_link_in_place_of_a_new_file_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "key").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        create_file(tmp_path / "key", b"secret")
    assert not (tmp_path / "elsewhere").exists()


def test_json_is_readable_by_all_in_a_folder_that_was_missing(tmp_path: Path) -> None:
    file = tmp_path / "new" / "book.json"
    write_json(file, {"chain": 7})
    assert (json.loads(file.read_bytes()), mode_of(file)) == ({"chain": 7}, 0o644)
    assert file.read_bytes().endswith(b"}\n")


def test_a_copy_of_any_size_is_private_and_replaces_nothing(tmp_path: Path) -> None:
    content = bytes(range(256)) * (2 * PIECE_BYTES // 256) + b"rest"
    copy = tmp_path / "copy"
    assert copy_private(io.BytesIO(content), copy) == hashlib.sha256(content).hexdigest()
    assert (copy.read_bytes(), mode_of(copy)) == (content, 0o600)
    with pytest.raises(FileExistsError):
        copy_private(io.BytesIO(b"other"), copy)
    assert copy.read_bytes() == content


def test_a_folder_that_does_not_exist_yet_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert unwritable_part(tmp_path) is None
    assert unwritable_part(tmp_path / "a" / "b") is None
    monkeypatch.chdir(tmp_path)
    assert unwritable_part(Path("a/b")) is None


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert unwritable_part(file / "a" / "b") == file
    assert unwritable_part(file) == file
