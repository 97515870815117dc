"""The TypeScript client is pinned, type-checked, and independent of the grid's code."""

from __future__ import annotations

import json
import re

import pytest

from tests.clients import typescript_client
from tests.clients.typescript_client import FOLDER


def test_packages_are_locked_by_hash_and_name_no_registry() -> None:
    for folder in (FOLDER, FOLDER.parents[2] / "contracts"):
        packages = json.loads((folder / "package-lock.json").read_text())["packages"]
        locked = {name: package for name, package in packages.items() if name}
        assert locked
        assert not [name for name, package in locked.items() if not package["integrity"].startswith("sha512-")]
        assert not [name for name, package in locked.items() if "resolved" in package]
        assert "registry=" not in (folder / ".npmrc").read_text().replace("omit-lockfile-registry-resolved=true", "")


@pytest.mark.deep  # `./run lint` checks the types, and tests/grid/test_existing_clients.py builds it
def test_the_client_compiles() -> None:
    typescript_client.build()
    assert (FOLDER / "build" / "main.js").exists()


def test_the_client_imports_nothing_of_the_grid() -> None:
    """It is written only from the description: it uses no exported ABI and no message definitions of the services."""
    imported = {name for file in FOLDER.glob("src/**/*.ts") for name in re.findall(r'from "(.+?)"', file.read_text())}
    assert imported and not [name for name in imported if "../../.." in name or "deepgrid" in name]
