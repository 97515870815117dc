"""A grid whose Prefect has two API servers, a process for background services, a proxy and Redis."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from deployments.scaled.grid import ScaledGrid
from tests.grid.customer import Customer
from tests.slurm.people import remove_accounts
from tests.slurm.support import open_folder


@pytest.fixture(scope="package")
def grid() -> Iterator[ScaledGrid]:
    with open_folder() as folder:
        one = ScaledGrid(folder)
        try:
            one.up(lambda *_: None)
            yield one
        finally:
            one.down()
            remove_accounts(one.state)


@pytest.fixture(scope="package")
def customer(grid: ScaledGrid, tmp_path_factory: pytest.TempPathFactory) -> Customer:
    return Customer(grid, tmp_path_factory.mktemp("home"))
