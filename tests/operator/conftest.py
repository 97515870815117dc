"""A grid of contracts per test, with the operator's session. Its notices are recorded instead of sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from deepgrid.chain.client import Chain
from deepgrid.operator.session import OperatorSettings, operator_session
from tests.chain.grid import Grid, gather_people, running_grid
from tests.operator.office import Office


@pytest.fixture
def grid(tmp_path: Path) -> Iterator[Grid]:
    with running_grid(tmp_path / "chain") as grid:
        yield grid


@pytest.fixture
async def office(grid: Grid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Office]:
    book = grid.book.save(tmp_path / "grid.json")
    settings = OperatorSettings(book, grid.operator_key, tmp_path / "state", approve_label_changes=True)
    async with await Chain.connect(grid.book) as chain, operator_session(settings) as session:
        one = Office(grid, await gather_people(grid, chain, "o"), session)
        monkeypatch.setattr(session.services, "post_notices", one.post)
        yield one
