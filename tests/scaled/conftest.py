"""A grid whose Prefect has two API servers, a process for background services, a proxy and Redis."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from deployments.scaled.grid import ScaledGrid
from tests.grid.customer import Customer
from tests.grid.running import grid_for_tests


@pytest.fixture(scope="package")
def grid() -> Iterator[ScaledGrid]:
    with grid_for_tests(ScaledGrid) as grid:
        yield grid


@pytest.fixture(scope="package")
def customer(grid: ScaledGrid, tmp_path_factory: pytest.TempPathFactory) -> Customer:
    return Customer(grid, tmp_path_factory.mktemp("home"))
