"""The client of tunnels, for customers and supervisors: signed requests, and WebSockets to the services."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import aiohttp

from deepgrid.errors import ServiceError
from deepgrid.lifecycle.job import Job
from deepgrid.safe_http import is_loopback, tls_of
from deepgrid.services.client import answers
from deepgrid.services.client.services_client import ServicesClient
from deepgrid.services.tunnels.frame_connection import MOST_AT_ONCE
from deepgrid.services.tunnels.multiplexer import SUBPROTOCOL, Multiplexer
from deepgrid.services.tunnels.secure_channel import (
    MAX_MESSAGE,
    Invitation,
    Invitations,
    OpeningTunnel,
    TunnelToken,
)
from deepgrid.services.tunnels.tunnel_socket import TunnelSocket

CONNECT_WITHIN_S = 20.0
HEARTBEAT_S = 20.0  # between pings, which also keep proxies from closing an idle connection


class TunnelsClient:
    """Tunnels of one account. Close it after the tunnels."""

    def __init__(
        self, services: ServicesClient, authorities: str | None = None, connect_within_s: float = CONNECT_WITHIN_S
    ) -> None:
        self._services = services
        self._authorities = authorities
        self._connect_within_s = connect_within_s
        self._http: aiohttp.ClientSession | None = None
        self._shared: Multiplexer | None = None
        self._can_share = True  # as far as the last answer tells
        self._connecting = asyncio.Lock()

    async def invitations(self, provider: str, wait_s: float) -> list[Invitation]:
        """Return what customers opened at this provider, whose wallet signs. Waits up to `wait_s` for something."""
        path = f"/v1/tunnels/{provider}/invitations?wait={wait_s:g}"
        return answers.parse(Invitations, await self._services.call("GET", path)).invitations

    async def open(self, job: Job) -> tuple[OpeningTunnel, TunnelSocket]:
        """Open a tunnel into an own running job, and connect this side of it."""
        opening = self._services.open_tunnel(job)
        path = f"/v1/tunnels/{job.provider}/jobs/{job.id}"
        answer = await self._services.call("POST", path, opening.opening)
        return opening, await self.join(opening.provider, answers.parse(TunnelToken, answer).token)

    async def join(self, provider: str, token: str) -> TunnelSocket:
        """Connect with a token. Raises ServiceError when the services do not answer or do not know it any more."""
        return _Socket(await self._connect(provider, token))

    async def join_with_others(self, provider: str, token: str) -> TunnelSocket:
        """Connect like `join`, in one WebSocket for all tunnels of a supervisor if the services can do that."""
        if self._can_share:  # else no tunnel needs to wait for another one's connection
            async with self._connecting:
                if self._can_share and (self._shared is None or self._shared.over.done() or not self._shared.tunnels):
                    return await self._share(provider, token)
        if self._shared is None or not self._can_share:
            return await self._share(provider, token)
        tunnel = await self._shared.join(token)
        return tunnel or await self.join(provider, token)  # another process of the services may know it

    async def _share(self, provider: str, token: str) -> TunnelSocket:
        """Connect, and share the WebSocket with later tunnels if the services can do that."""
        try:
            socket = await self._connect(provider, token, SUBPROTOCOL)
        except ServiceError:
            self._can_share = False
            raise
        self._can_share = socket.protocol == SUBPROTOCOL
        if not self._can_share:
            return _Socket(socket)
        self._shared = Multiplexer(_Socket(socket))
        return self._shared.first

    async def close(self) -> None:
        if self._shared is not None:
            await self._shared.close()
        if self._http is not None:
            await self._http.close()

    async def _connect(self, provider: str, token: str, *protocols: str) -> aiohttp.ClientWebSocketResponse:
        base = self._services.base_url
        url = f"ws{base.removeprefix('http')}/v1/tunnels/{provider}/ends/{token}"
        if self._http is None:
            host = urlsplit(base).hostname or ""
            tls = aiohttp.TCPConnector(ssl=tls_of(base, self._authorities) or True, limit=0)
            self._http = aiohttp.ClientSession(
                connector=tls, timeout=aiohttp.ClientTimeout(total=None), trust_env=not is_loopback(host)
            )
        largest = max(MAX_MESSAGE, MOST_AT_ONCE) + 1  # the library refuses a message of this size
        try:
            async with asyncio.timeout(self._connect_within_s):
                return await self._http.ws_connect(
                    url, protocols=protocols, max_msg_size=largest, heartbeat=HEARTBEAT_S, compress=0
                )
        except (aiohttp.ClientError, OSError, TimeoutError):
            raise ServiceError(f"The grid's services at {base} do not open a WebSocket.") from None


class _Socket:
    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket

    async def send(self, data: bytes) -> None:
        try:
            await self._socket.send_bytes(data)
        except (aiohttp.ClientError, RuntimeError) as error:
            raise ConnectionResetError(str(error)) from None

    async def receive(self) -> bytes:
        message = await self._socket.receive()
        return message.data if message.type is aiohttp.WSMsgType.BINARY else b""

    async def close(self) -> None:
        await self._socket.close()
