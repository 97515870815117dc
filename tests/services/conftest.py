"""Fixtures: a real server on a free port, with a fake chain that the test controls."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.services.support import Grid, Start, starting


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Start services. All end with the test."""
    async with starting(tmp_path) as start_one:
        yield start_one


@pytest.fixture
async def grid(start: Start) -> Grid:
    return await start()
