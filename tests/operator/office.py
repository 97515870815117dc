"""The operator at work, in a grid of contracts."""

from __future__ import annotations

from dataclasses import dataclass, field

from deepgrid.lifecycle.job import Job
from deepgrid.operator.session import OperatorSession, follow_jobs
from tests.chain.grid import Grid, People

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
