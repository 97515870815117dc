"""A whole grid for tests and benchmarks, removed afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from deployments.onemachine.grid import LocalGrid
from tests.slurm.people import remove_accounts
from tests.slurm.support import open_folder

GridT = TypeVar("GridT", bound=LocalGrid)


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
