"""Repositories are fetched from a configured mirror. Their names in files and messages stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepgrid.errors import ConfigurationError
from deepgrid.modules.reach import MIRRORS_VARIABLE, mirror_address, mirrors
from tests.modules.support import HEAD, Origin, commands, faults, load


@pytest.mark.parametrize(
    "start", ["https://example.org/", "example.org", "https://example.org/hpc/tools", "https://example.org/hpc"]
)
def test_a_module_is_fetched_from_the_mirror(
    start: str, origin: Origin, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = origin.commit(HEAD + "steps: [{run: {command: mirrored}}]\n", "m/module.yaml", tag="v1")
    origin.folder.rename(tmp_path / "tools")
    (tmp_path / "hpc").mkdir()
    (tmp_path / "tools").rename(tmp_path / "hpc" / "tools")
    rest = start.removeprefix("https://").removeprefix("example.org").strip("/")
    monkeypatch.setenv(
        MIRRORS_VARIABLE, f"https://other.example/=https://127.0.0.1:1/ {start}=file://{tmp_path}/{rest}"
    )
    for ref in ("v1", commit, commit[:9]):
        loaded = load(f"- use: {{source: 'example.org/hpc/tools/m@{ref}'}}\n", cache)
        module = loaded.model.steps[0].module
        assert module is not None
        assert (module.source, module.commit) == (f"example.org/hpc/tools/m@{ref}", commit)
        assert commands(loaded.model) == ["mirrored"]
    (found,) = faults("- use: {source: 'example.org/hpc/tools/m@v2'}\n", cache)
    assert found.endswith("https://example.org/hpc/tools has no tag v2, and that is no commit id")


def test_the_longest_beginning_counts_and_ends_at_a_slash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MIRRORS_VARIABLE, "https://a.org/=https://m.org/all https://a.org/x/y=ssh://git@m.org/one\n")
    pairs = mirrors()
    assert mirror_address("https://a.org/x/y", pairs) == "ssh://git@m.org/one"
    assert mirror_address("https://a.org/x/yz", pairs) == "https://m.org/all/x/yz"
    assert mirror_address("https://a.org.evil/x/y", pairs) == "https://a.org.evil/x/y"
    assert mirror_address("https://b.org/x/y", pairs) == "https://b.org/x/y"


@pytest.mark.parametrize(
    "entry",
    ["x", "=", "https://a.org/=", "https://a.org/=--upload-pack=x", "a.org=http://m.org/", "a.org=ext::sh",
    "a.org=file:///",
     "a.org=https://me:s3cret@m.org/", "a.org=https://s3cret@m.org/", "a.org=ssh://-x/a",
     "a.org=https://m.org/?s3cret"],
)  # fmt: skip
def test_an_entry_that_names_no_mirror_is_refused_without_repeating_it(
    entry: str, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    monkeypatch.setenv(MIRRORS_VARIABLE, entry)
    with pytest.raises(ConfigurationError, match=f"{MIRRORS_VARIABLE} has an entry that names no mirror") as caught:
        load("- use: {source: 'a.org/x/y'}\n", cache)
    assert "s3cret" not in str(caught.value)
