"""One world for all rounds of a session. The rows of their table are part of the test reports."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from tests.chaos.table import PROPERTY, Row
from tests.chaos.world import World, chaos_world

SEED = "DEEPGRID_CHAOS_SEED"


@pytest.fixture(scope="package")
def seed() -> int:
    """The seed of all rounds of this session."""
    return int(os.environ.get(SEED, "0"))


@pytest.fixture
def record(record_property: Callable[[str, object], None]) -> Callable[[Row], None]:
    """Records rows for the table at the end of the session."""
    return lambda row: record_property(PROPERTY, row.to_report())


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with chaos_world(tmp_path_factory.mktemp("chaos")) as one:
        yield one
