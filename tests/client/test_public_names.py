"""The names that deepgrid promises."""

from __future__ import annotations

import inspect
import itertools
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import deepgrid
from deepgrid import client
from tests.cli.live import EXAMPLE
from tests.client.stage import Customer
from tests.client.support import SimulatedCluster, run_program


def _docstring(name: str) -> str:
    """Return the docstring of a public name, or of the package for the empty name."""
    return (getattr(client, name) if name else client).__doc__ or ""


def test_the_public_names_are_those_of_the_client() -> None:
    assert deepgrid.__all__ == client.__all__ == sorted(client.__all__)
    for name in deepgrid.__all__:
        assert getattr(deepgrid, name) is getattr(client, name)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        deepgrid.Nothing  # noqa: B018


def test_every_public_name_has_its_place_in_the_reference() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "client.md").read_text()
    assert sorted(re.findall(r"^::: deepgrid\.client\.(\w+)$", page, re.M)) == client.__all__


def test_importing_deepgrid_imports_nothing_heavy() -> None:
    program = "import sys, deepgrid; print([m for m in ('web3', 'pydantic', 'httpx', 'typer') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("name", ["", *(name for name in client.__all__ if "Example:" in str(_docstring(name)))])
def test_the_examples_of_the_docstrings_run(
    name: str, customer: Customer, cluster: SimulatedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in ("job.yaml", "train.yaml"):
        shutil.copy(EXAMPLE, tmp_path / file)
    monkeypatch.chdir(tmp_path)
    run_program(_example(name), customer, {"Path": Path} | {one: getattr(client, one) for one in client.__all__})


def _example(name: str) -> str:
    """Return the indented lines behind "Example:"."""
    lines = inspect.cleandoc(_docstring(name)).partition("Example:\n")[2].splitlines()
    return textwrap.dedent("\n".join(itertools.takewhile(lambda line: not line or line.startswith(" "), lines)))
