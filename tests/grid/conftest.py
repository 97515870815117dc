"""One whole grid for the tests of this folder, with real chain, Slurm, SSH, PostgreSQL, Prefect and services."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from prefect.events.worker import EventsWorker
from prefect.logging.handlers import APILogWorker
from prefect.settings import (
    PREFECT_API_AUTH_STRING,
    PREFECT_API_URL,
    PREFECT_WORKER_QUERY_SECONDS,
    temporary_settings,
)

from deployments.onemachine.grid import LocalGrid
from deployments.scaled.grid import ScaledGrid
from tests.grid.customer import SCALED, Customer
from tests.grid.running import grid_for_tests


@pytest.fixture(scope="package")
def grid() -> Iterator[LocalGrid]:
    """A running grid.

    Its workers poll Prefect every two seconds, because the tests start many runs as the UI does and await each. With
    DEEPGRID_TEST_SCALED in the environment its Prefect has several servers.
    """
    kind = ScaledGrid if os.environ.get(SCALED) else LocalGrid
    with grid_for_tests(kind, **{PREFECT_WORKER_QUERY_SECONDS.name: "2"}) as grid:
        yield grid


@pytest.fixture(scope="package")
def customer(grid: LocalGrid, tmp_path_factory: pytest.TempPathFactory) -> Customer:
    return Customer(grid, tmp_path_factory.mktemp("home"))


@pytest.fixture
def prefect_api(grid: LocalGrid) -> Iterator[None]:
    """Let flows of this process use the grid's Prefect. Their logs and events are delivered before it stops."""
    url, login = grid.prefect.environment()["PREFECT_API_URL"], grid.prefect.login()
    with temporary_settings({PREFECT_API_URL: url, PREFECT_API_AUTH_STRING: login, PREFECT_WORKER_QUERY_SECONDS: 1}):
        yield
        APILogWorker.drain_all(timeout=30)
        EventsWorker.drain_all(timeout=30)
