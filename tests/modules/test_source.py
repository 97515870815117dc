"""The forms of `source`, and the git commands for each."""

from __future__ import annotations

import pytest

from deepgrid.errors import InputError
from deepgrid.modules.source import Folder, Repository, parse_source

HERE = Folder("here")
THERE = Repository("https://example.org/a/b", "tools/x", "0" * 40)
LOCAL = Repository("file:///srv/b", "", "0" * 40)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("example.org/a/b", Repository("https://example.org/a/b")),
        ("example.org:8443/a/b/c/d@v1.2", Repository("https://example.org:8443/a/b", "c/d", "v1.2")),
        ("example.org/a/b@c/v1", Repository("https://example.org/a/b", "", "c/v1")),
        ("https://example.org/x/y/z//c/d@v1", Repository("https://example.org/x/y/z", "c/d", "v1")),
        ("ssh://git@example.org/a/b.git", Repository("ssh://git@example.org/a/b.git")),
        ("ssh://git@example.org/a/b.git@v1", Repository("ssh://git@example.org/a/b.git", "", "v1")),
        ("file:///srv/b//c@v1", Repository("file:///srv/b", "c", "v1")),
        ("./m", Folder("here/m")),
        ("../m@1", Folder("m@1")),
        ("/srv/m", Folder("/srv/m")),
    ],
)
def test_forms(text: str, meant: Folder | Repository) -> None:
    assert parse_source(text, HERE) == meant


def test_a_module_in_a_repository_names_its_neighbours_at_the_same_commit() -> None:
    assert parse_source("../y", THERE) == Repository("https://example.org/a/b", "tools/y", "0" * 40)
    assert parse_source("./z", THERE) == Repository("https://example.org/a/b", "tools/x/z", "0" * 40)
    assert parse_source("file:///srv/c", LOCAL) == Repository("file:///srv/c")
    for text in ("../../..", "/etc", "file:///srv/b", "./../../../x"):
        with pytest.raises(InputError):
            parse_source(text, THERE)


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "example.org", "example.org/a", "--upload-pack=touch x", "-c/a/b", "ext::sh -c id", "ext://a/b/c",
        "http://example.org/a/b", "git://example.org/a/b", "ftp://h/a", "git@example.org:a/b",
        "ssh://-oProxyCommand=x/a",
        "ssh://-x@example.org/a", "https://user:secret@example.org/a/b", "https://token@example.org/a/b", "https:///a/b",
        "example.org/a/b@", "example.org/a/b@-x", "example.org/a/b@x..y", "example.org/a/b@refs/*",
        "example.org/a/b@a b",
        "example.org/a/../b", "example.org/a/b/../c", "example.org/a/b/$(id)", "https://example.org/a?b", "file://host/b",
        "https://example.org/a/b#c", "example.org/a/b\n", "file:///", "example.org/a/-b/\0",
    ],
)  # fmt: skip
def test_everything_else_is_refused_in_words(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_source(text, HERE)
    assert "secret" not in caught.value.message
