"""Candidates for the leadership of a provider, in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import TypeVar

from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.ssh.login_settings import LoginSettings
from deepgrid.slurm.supervision.leader import LEADER_DEFAULTS, Leader, LeaderSettings
from tests.slurm.support import WAIT_S

T = TypeVar("T")
Holding = asyncio.Task[None]


class Candidate(Leader):
    """A candidate with its own login and cluster."""

    def __init__(self, settings: LoginSettings, provider: str, timing: LeaderSettings = LEADER_DEFAULTS) -> None:
        self.login = Login(settings)
        self.cluster = Cluster(self.login, settings)
        self.attempts = 0
        super().__init__(self.login, self.cluster, provider, timing)

    async def _try_lock(self, last: int) -> int:
        self.attempts += 1
        return await super()._try_lock(last)

    @property
    def epoch(self) -> int:
        assert self.cluster.term is not None
        return self.cluster.term.epoch


@asynccontextmanager
async def candidate(
    settings: LoginSettings, provider: str, timing: LeaderSettings = LEADER_DEFAULTS
) -> AsyncIterator[Candidate]:
    """Yield a candidate that does not lead yet."""
    one = Candidate(settings, provider, timing)
    try:
        yield one
    finally:
        one.close()
        await one.login.close()


@asynccontextmanager
async def leading(
    settings: LoginSettings, provider: str, timing: LeaderSettings = LEADER_DEFAULTS
) -> AsyncIterator[tuple[Candidate, Holding]]:
    """Yield a candidate that leads while the block lasts, and the task that holds the lock."""
    async with candidate(settings, provider, timing) as one:
        await within(one.elected())
        holding = asyncio.create_task(one.hold())
        try:
            yield one, holding
        finally:
            holding.cancel()
            await asyncio.gather(holding, return_exceptions=True)


async def within(waiting: Awaitable[T]) -> T:
    """Await with the usual timeout of these tests."""
    async with asyncio.timeout(WAIT_S):
        return await waiting
