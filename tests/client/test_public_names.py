"""The names that deepgrid promises."""

from __future__ import annotations

import subprocess
import sys

import pytest

import deepgrid
from deepgrid import client


def test_the_public_names_are_those_of_the_client() -> None:
    assert deepgrid.__all__ == client.__all__ == sorted(client.__all__)
    for name in deepgrid.__all__:
        assert getattr(deepgrid, name) is getattr(client, name)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        deepgrid.Nothing  # noqa: B018


def test_importing_deepgrid_imports_nothing_heavy() -> None:
    program = "import sys, deepgrid; print([m for m in ('web3', 'pydantic', 'httpx', 'typer') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"
