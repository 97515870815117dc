"""The names that deepgrid promises."""

from __future__ import annotations

import inspect
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

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


def test_the_examples_of_the_docstrings_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(Path(__file__).parents[2] / "examples" / "hello-world.yaml", tmp_path / "job.yaml")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(textwrap.dedent((client.__doc__ or "").split("one by one.\n")[1].split("\nAmounts are")[0]), names)  # noqa: S102 - our own examples
    exec(textwrap.dedent((client.read_order.__doc__ or "").split("Example:\n")[1]), names)  # noqa: S102 - our own examples
    assert names["order"].locked_wei == 100 * 10**18
    assert [(label.key, label.value) for label in names["order"].uses] == [("os", "linux")]
    assert inspect.iscoroutinefunction(names["submit"])
