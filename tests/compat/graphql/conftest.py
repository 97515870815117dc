"""One running service per module: starting one, with the processes that examine GraphQL, takes half a second."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.compat.graphql.support import UNLIMITED, UNLIMITED_COMPAT
from tests.services.support import Grid, starting


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def grid(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Grid]:
    """Services that all tests of a module share. No rate of requests ends them."""
    async with starting(tmp_path_factory.mktemp("services")) as start:
        yield await start(limits=UNLIMITED, compat=UNLIMITED_COMPAT)
