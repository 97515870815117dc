"""A state folder can be made below a folder that this account can write, and below nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepgrid.state_folder import unwritable_part


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
