"""What an import of the client loads, and how long it takes."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("prefect", "pandas", "matplotlib", "paramiko", "sqlalchemy", "fastapi")
LANGUAGE = ("jinja2", "deepgrid.workflow", "deepgrid.modules")  # loaded with the first workflow
MOST_CPU_S = 1.0
MOST_CPU_OF_GRID_S = 2.0  # 0.9 s when it was written
PROGRAM = """
import sys, time
before = time.process_time()
{statement}
seconds = time.process_time() - before
print(seconds, *sys.modules)
"""


def _loaded(statement: str) -> tuple[float, set[str]]:
    """The processor time of a statement in a new process, and the modules that are loaded after it."""
    program = [sys.executable, "-c", PROGRAM.format(statement=statement)]
    seconds, *modules = subprocess.run(program, capture_output=True, text=True, check=True).stdout.split()
    return float(seconds), set(modules)


@pytest.mark.parametrize(
    ("statement", "most_s"),
    [
        ("import deepgrid.client", MOST_CPU_S),
        ("from deepgrid import Grid; Grid", MOST_CPU_OF_GRID_S),
        ("from deepgrid import AsyncGrid; AsyncGrid", MOST_CPU_OF_GRID_S),
    ],
)
def test_an_import_is_quick_and_loads_nothing_heavy(statement: str, most_s: float) -> None:
    measured = [_loaded(statement) for _ in range(3)]
    assert not measured[0][1] & {*HEAVY, *LANGUAGE}
    assert min(seconds for seconds, _ in measured) <= most_s


def test_all_public_names_load_nothing_heavy() -> None:
    _, modules = _loaded("import deepgrid; [getattr(deepgrid, name) for name in deepgrid.__all__]")
    assert not modules & set(HEAVY)
