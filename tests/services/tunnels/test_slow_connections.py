"""Services that accept a connection and never answer hold up no session for long, and no other one behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from deepgrid.errors import ServiceError
from deepgrid.services.client.tunnels_client import TunnelsClient

WITHIN_S = 20.0
PROVIDER, TOKEN = "0x" + "0" * 40, "0" * 64


@dataclass
class Silent:
    """Services that answer no request."""

    url: str = ""
    connected: int = 0
    most_at_once: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connected += 1
        self.most_at_once = max(self.most_at_once, self.connected)
        while await reader.read(1000):
            pass
        self.connected -= 1
        writer.close()


@pytest.fixture
async def silent() -> AsyncIterator[Silent]:
    found = Silent()
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    async with server, asyncio.timeout(WITHIN_S):
        found.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield found


async def test_a_connection_that_is_never_answered_holds_up_no_later_session(silent: Silent) -> None:
    """The later ones wait for the first one, whose WebSocket they would share. Then each tries one of its own."""
    client = TunnelsClient(cast(Any, SimpleNamespace(base_url=silent.url)), connect_within_s=0.3)
    joins = [client.join_with_others(PROVIDER, TOKEN) for _ in range(4)]
    for failure in await asyncio.gather(*joins, return_exceptions=True):
        assert isinstance(failure, ServiceError)
    assert silent.most_at_once >= 3
    await client.close()
