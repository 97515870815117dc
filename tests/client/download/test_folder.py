"""Names of strangers become paths that stay in the target folder."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepgrid.client.download.folder import Folder, open_part, part_of, safe_name, size_of
from deepgrid.errors import InputError

ROOT = Path("/the/folder")
HOSTILE = [
    "/etc/passwd",
    "../x",
    "a/../../x",
    "..",
    ".",
    "a//b",
    "./a",
    "a/\x1b[2J",
    "a\nb",
    "\u202efdp.exe",
    "..\\x",
    "/",
]


@given(st.text(min_size=1) | st.sampled_from(HOSTILE) | st.text("./\\ab", min_size=1))
def test_no_name_leaves_the_folder_or_steers_a_terminal(name: str) -> None:
    safe = safe_name(name)
    assert not safe.is_absolute()
    assert not {"..", "."} & set(safe.parts)
    assert safe.parts
    assert (ROOT / safe).resolve().is_relative_to(ROOT)
    assert not {unicodedata.category(c) for c in str(safe)} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_usual_names_stay_as_they_are() -> None:
    for name in ("a", "frames/0001.png", "-x y", "~", "a..b/...", "naïve/中.txt", "100%", ".hidden"):
        assert str(safe_name(name)) == name
    assert str(safe_name("/a//../b\n")) == "a/%2E%2E/b%0A"


@pytest.mark.parametrize("names", [["a", "/a"], ["a/b", "a//b"], ["a", "a/b"], ["a/b/c", "a/b"]])
def test_two_files_never_share_a_path(tmp_path: Path, names: list[str]) -> None:
    with pytest.raises(InputError, match="Two files of the output"):
        Folder(tmp_path).places(names)


@pytest.mark.parametrize("names", [["A.bin", "a.bin"], ["A", "a/b"], ["a\u0308", "\u00e4"]])
def test_names_that_a_file_system_takes_for_the_same_are_refused_there(
    tmp_path: Path, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On macOS and Windows, the second file overwrote the first one without a word."""
    folder = Folder(tmp_path)
    assert len(folder.places(names)) == 2  # here, case matters
    assert list(tmp_path.iterdir()) == []
    exists = Path.exists

    def ignoring_case(path: Path) -> bool:
        names = {unicodedata.normalize("NFC", one.name).casefold() for one in path.parent.iterdir()}
        return exists(path) or unicodedata.normalize("NFC", path.name).casefold() in names

    monkeypatch.setattr(Path, "exists", ignoring_case)
    with pytest.raises(InputError, match="Two files of the output would both be"):
        folder.places(names)
    assert len(folder.places(["A", "b"])) == 2


def test_links_in_the_folder_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    folder = Folder(tmp_path / "to")
    (tmp_path / "to" / "link").symlink_to(outside)
    place = folder.places(["link/deep/x"])["link/deep/x"]
    with pytest.raises(InputError, match="link is not a folder"):
        folder.make_room(place)
    (tmp_path / "to" / "part").symlink_to(outside / "file")
    with pytest.raises(InputError, match="cannot be written"):
        open_part(tmp_path / "to" / "part", 0)
    assert size_of(tmp_path / "to" / "part") == 0
    assert list(outside.iterdir()) == []


def test_a_file_in_place_of_the_folder_is_an_error_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file cannot be written: File exists"):
        Folder(tmp_path / "file")
    with pytest.raises(InputError, match="bytes free"):
        Folder(tmp_path).check_space(2**80)


def test_parts_of_long_names_fit_and_versions_have_their_own() -> None:
    place = ROOT / ("é" * 127)
    assert len(part_of(place, "0123abcd").name.encode()) <= 255
    assert part_of(place, "1") != part_of(place, "2")
