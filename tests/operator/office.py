"""The operator at work, in a grid of contracts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from deepgrid.chain.client import Chain
from deepgrid.lifecycle.job import Job
from deepgrid.operator.session import OperatorSession, OperatorSettings, follow_jobs, operator_session
from tests.chain.grid import Grid, People, gather_people

MINUTE_S = 60


HOUR_S = 3600


@dataclass
class Office:
    """The operator at work: a session, the people of the grid, and the notices to customers."""

    grid: Grid
    people: People
    session: OperatorSession
    notices: list[tuple[int, str, str]] = field(default_factory=list)

    async def catch_up(self) -> None:
        """Read the news of the chain, as the operator's process does all the time."""
        news = follow_jobs(self.session)
        await anext(news)
        await news.aclose()  # type: ignore[attr-defined]

    async def job(self, job_id: int) -> Job:
        return await self.people.chain.job(job_id)

    def pass_time(self, seconds: int) -> None:
        self.grid.anvil.pass_time(seconds)

    async def post(self, notices: list[tuple[int, str, str]]) -> None:
        self.notices += notices


@asynccontextmanager
async def office_of(grid: Grid, folder: Path) -> AsyncIterator[Office]:
    """Yield the operator of a new grid, with its state in `folder`."""
    book = grid.book.save(folder / "grid.json")
    settings = OperatorSettings(book, grid.operator_key, folder / "state", approve_label_changes=True)
    async with await Chain.connect(grid.book) as chain, operator_session(settings) as session:
        one = Office(grid, await gather_people(grid, chain, "o"), session)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(session.services, "post_notices", one.post)
            yield one
