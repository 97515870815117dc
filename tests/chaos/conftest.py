"""One world for all rounds of a session, and the table at its end."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.chaos.table import Table
from tests.chaos.world import World, chaos_world

SEED = "DEEPGRID_CHAOS_SEED"
TABLE = pytest.StashKey[Table]()


@pytest.fixture(scope="package")
def seed() -> int:
    """Of all rounds of this session."""
    return int(os.environ.get(SEED, "0"))


@pytest.fixture(scope="package")
def table(request: pytest.FixtureRequest) -> Table:
    return request.config.stash.setdefault(TABLE, Table())


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with chaos_world(tmp_path_factory.mktemp("chaos")) as one:
        yield one


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    table = config.stash.get(TABLE, None)
    if table is not None and (text := table.text()):
        terminalreporter.section("points x outcomes")
        terminalreporter.write_line(text)
