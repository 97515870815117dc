"""The three ways in which Prefect's server can be unavailable."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from signal import SIGCONT, SIGSTOP

import asyncpg

from deployments.onemachine.grid import LocalGrid

SERVER = "prefect-server"
WAYS = ("refusing", "hanging", "failing")


@asynccontextmanager
async def prefect_away(grid: LocalGrid, way: str) -> AsyncIterator[None]:
    """Let Prefect's API refuse connections, leave requests unanswered, or answer HTTP 5xx during the context."""
    during = {"refusing": _killed, "hanging": _held, "failing": _without_database}
    async with during[way](grid):
        yield


@asynccontextmanager
async def _killed(grid: LocalGrid) -> AsyncIterator[None]:
    grid.kill(SERVER)
    try:
        yield
    finally:
        await asyncio.to_thread(grid.start, "prefect")


@asynccontextmanager
async def _held(grid: LocalGrid) -> AsyncIterator[None]:
    leader = grid.table.pid(SERVER)
    assert leader is not None
    os.killpg(leader, SIGSTOP)
    try:
        yield
    finally:
        os.killpg(leader, SIGCONT)


@asynccontextmanager
async def _without_database(grid: LocalGrid) -> AsyncIterator[None]:
    admin = await asyncpg.connect(grid.postgres.url("postgres").replace("+asyncpg", ""))
    try:
        await admin.execute("ALTER DATABASE prefect ALLOW_CONNECTIONS false")
        await admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'prefect'")
        yield
    finally:
        await admin.execute("ALTER DATABASE prefect ALLOW_CONNECTIONS true")
        await admin.close()
