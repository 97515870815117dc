"""`dps` is built on the public names of the packages below it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import deepgrid.cli

FILES = sorted(Path(deepgrid.cli.__file__).parent.rglob("*.py"))


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def private_uses(source: str) -> Iterator[str]:
    """Return private names that this source imports, or accesses on objects other than `self` and `cls`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            yield from (f"line {node.lineno}: {name}" for name in names if is_private(name))
        elif isinstance(node, ast.Import):
            names = [name for alias in node.names for name in alias.name.split(".")]
            yield from (f"line {node.lineno}: {name}" for name in names if is_private(name))
        elif (
            isinstance(node, ast.Attribute) and is_private(node.attr) and ast.unparse(node.value) not in ("self", "cls")
        ):
            yield f"line {node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_command_uses_no_private_name_of_another_module(file: Path) -> None:
    assert list(private_uses(file.read_text())) == []


@pytest.mark.parametrize(
    "source",
    ["from a import _b", "from a._b import c", "import a._b", "import a\na._b()", "from a import b\nb.c._d"],
)
def test_the_check_finds_private_names(source: str) -> None:
    assert len(list(private_uses(source))) == 1
