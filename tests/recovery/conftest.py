"""One whole grid for the drills."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from deployments.onemachine.grid import LocalGrid
from tests.grid.customer import Customer
from tests.slurm.people import remove_accounts
from tests.slurm.support import open_folder


@pytest.fixture(scope="package")
def customer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Customer]:
    with open_folder() as folder:
        grid = LocalGrid(folder)
        try:
            grid.up(lambda *_: None)
            yield Customer(grid, tmp_path_factory.mktemp("home"))
        finally:
            grid.down()
            remove_accounts(grid.state)
