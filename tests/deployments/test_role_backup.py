"""A role's backup is not written to a folder that the next backup would contain."""

from __future__ import annotations

import json
import os
import tarfile
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import pytest

from deepgrid.errors import ConfigurationError
from deployments.cli import backup
from deployments.cli.backup import NEEDED, back_up_operator, back_up_provider
from deployments.provider.setup.document import Document

REFUSED = r"is in the state folder .*state, so each backup would hold those before it\. Choose another folder"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    (folder / "inner").mkdir(parents=True)
    (folder / "alpha.logs.json").write_text("[]")
    return folder


@pytest.fixture
def settings(state: Path) -> Path:
    """A settings file whose other files are next to it."""
    document = Document.read(state.with_name("alpha.toml"))
    document.set("cluster", "alpha")
    document.set("supervisor.state", str(state))
    for key in NEEDED:
        file = state.with_name(key)
        file.touch()
        document.set(key, str(file))
    document.write()
    return document.path


@pytest.mark.parametrize("name", ["state/backup.tar", "state/inner/backup.tar", "link/backup.tar", "inner/../state/b"])
def test_an_archive_in_a_providers_state_folder_is_refused(settings: Path, state: Path, name: str) -> None:
    state.with_name("link").symlink_to(state)
    state.with_name("inner").mkdir()
    with pytest.raises(ConfigurationError, match=REFUSED):
        back_up_provider(settings, state.parent / name)
    assert sorted(os.listdir(state)) == ["alpha.logs.json", "inner"]


def test_an_archive_in_an_operators_state_folder_is_refused(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def block(*_: object) -> SimpleNamespace:
        return SimpleNamespace(settings=lambda: SimpleNamespace(state=state))

    monkeypatch.setattr(backup, "require_prefect", lambda: None)
    monkeypatch.setattr(backup, "load_block", block)
    with pytest.raises(ConfigurationError, match=REFUSED):
        back_up_operator("main", state / "backup.tar")
    assert sorted(os.listdir(state)) == ["alpha.logs.json", "inner"]


def test_an_archive_beside_the_state_folder_is_written(settings: Path, state: Path) -> None:
    archive = state.with_name("state.tar")
    back_up_provider(settings, archive)
    assert archive.exists()


def test_the_files_of_a_jump_host_are_in_the_archive(settings: Path, state: Path, tmp_path: Path) -> None:
    document = Document.read(settings)
    for name in ("jump_key", "jump_known_hosts"):
        (tmp_path / name).write_text("a secret")
        document.set(f"login.{name}_file", str(tmp_path / name))
    document.write()
    archive = state.with_name("with_jump.tar")
    back_up_provider(settings, archive)
    with tarfile.open(archive) as tar:
        found = json.load(tar.extractfile("manifest.json") or BytesIO())
    assert {str(tmp_path / name) for name in ("jump_key", "jump_known_hosts")} <= set(found["paths"].values())
