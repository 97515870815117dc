"""The modules that an import of the client loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("prefect", "pandas", "matplotlib", "paramiko", "sqlalchemy", "fastapi")
LANGUAGE = ("jinja2", "deepgrid.workflow", "deepgrid.modules")  # loaded with the first workflow
MODULES, MODULES_OF_GRID = 100, 600  # at most; 65 and 479 when it was written. Time depends on the machine
PROGRAM = """
import sys
{statement}
print(*sys.modules)
"""


def _loaded(statement: str) -> set[str]:
    """Return the modules that are loaded after a statement in a new process."""
    program = [sys.executable, "-c", PROGRAM.format(statement=statement)]
    return set(subprocess.run(program, capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize(
    ("statement", "most"),
    [
        ("import deepgrid.client", MODULES),
        ("from deepgrid import Grid; Grid", MODULES_OF_GRID),
        ("from deepgrid import AsyncGrid; AsyncGrid", MODULES_OF_GRID),
    ],
)
def test_an_import_is_quick_and_loads_nothing_heavy(statement: str, most: int) -> None:
    modules = _loaded(statement)
    assert not modules & {*HEAVY, *LANGUAGE}
    assert len(modules) <= most


def test_all_public_names_load_nothing_heavy() -> None:
    modules = _loaded("import deepgrid; [getattr(deepgrid, name) for name in deepgrid.__all__]")
    assert not modules & set(HEAVY)
