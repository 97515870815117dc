"""A grid of contracts per test, with the operator's session. Its notices are recorded instead of sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.chain.grid import Grid, running_grid
from tests.operator.office import Office, office_of


@pytest.fixture
def grid(tmp_path: Path) -> Iterator[Grid]:
    with running_grid(tmp_path / "chain") as grid:
        yield grid


@pytest.fixture
async def office(grid: Grid, tmp_path: Path) -> AsyncIterator[Office]:
    async with office_of(grid, tmp_path) as one:
        yield one
