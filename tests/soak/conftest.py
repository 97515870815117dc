"""A separate grid: its processes are restarted, and their memory is compared."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from deployments.onemachine.grid import LocalGrid
from tests.grid.customer import Customer
from tests.grid.running import running_grid


@pytest.fixture
def customer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Customer]:
    with running_grid(LocalGrid) as grid:
        yield Customer(grid, tmp_path_factory.mktemp("home"))
