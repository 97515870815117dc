"""A whole grid for tests and benchmarks, removed afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from deployments.onemachine.grid import LocalGrid
from tests.slurm.people import remove_accounts
from tests.slurm.support import open_folder

GridT = TypeVar("GridT", bound=LocalGrid)

# Rounds of Prefect's server that no test awaits. At their usual rate they take more processor time than jobs do.
SELDOM = {
    f"PREFECT_SERVER_SERVICES_{service}_LOOP_SECONDS": "60"
    for service in ("LATE_RUNS", "PAUSE_EXPIRATIONS", "CLEANUP_RECONCILER")
}


@contextmanager
def grid_for_tests(kind: type[GridT], **environment: str) -> Iterator[GridT]:
    """Yield a running grid whose processes have these variables, and whose Prefect server idles cheaply."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**SELDOM, **environment}.items():
            patch.setenv(name, value)
        with running_grid(kind) as grid:
            yield grid


@contextmanager
def running_grid(kind: type[GridT]) -> Iterator[GridT]:
    """Yield a running grid, in a folder that other accounts may enter, so that root gives each customer an account."""
    with open_folder() as folder:
        grid = kind(folder)
        try:
            grid.up(lambda *_: None)
            yield grid
        finally:
            grid.down()
            remove_accounts(grid.state)
