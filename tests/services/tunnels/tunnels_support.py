"""Tunnels of one supervisor at real services, and both sides of each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.client.tunnels_client import TunnelsClient
from deepgrid.services.tunnels.tunnel_socket import TunnelSocket
from tests.services.support import ACCOUNTS, Grid, Start
from tests.waiting import until

PROVIDER = ACCOUNTS["provider"].address
WITHIN_S = 60.0


@dataclass
class Tunnels:
    """Services, the tunnels of one supervisor, and their customers."""

    grid: Grid
    supervisor: TunnelsClient
    customers: list[TunnelsClient] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)

    async def invited(self) -> tuple[TunnelSocket, str]:
        """Return the customer's side of a new tunnel, and the token of the supervisor's."""
        self.customers.append(client := TunnelsClient(self.grid.customer))
        asking = asyncio.create_task(self.supervisor.invitations(PROVIDER, 20))
        board = self.grid.context.switchboard
        await until(lambda: (line := board._lines.get(PROVIDER)) and line.asking, pause_s=0.01)
        _, near = await client.open(self.grid.chain.jobs_by_id[1])
        (invitation,) = await asking
        return near, invitation.token

    async def opened(self) -> tuple[TunnelSocket, TunnelSocket]:
        """Return both sides of a new tunnel."""
        near, token = await self.invited()
        self.tokens.append(token)
        return near, await self.supervisor.join_with_others(PROVIDER, token)

    async def close(self) -> None:
        for client in (self.supervisor, *self.customers):
            await client.close()


@asynccontextmanager
async def open_tunnels(start: Start) -> AsyncIterator[Tunnels]:
    """Start services with a running job."""
    grid = await start()
    grid.chain.put(1, "0" * 64, JobStatus.RUNNING)
    found = Tunnels(grid, TunnelsClient(grid.provider))
    async with asyncio.timeout(WITHIN_S):
        yield found
        await found.close()


async def pass_both_ways(near: TunnelSocket, far: TunnelSocket, text: bytes = b"text") -> None:
    """Send a message in each direction."""
    await near.send(text)
    assert await far.receive() == text
    await far.send(text[::-1])
    assert await near.receive() == text[::-1]
