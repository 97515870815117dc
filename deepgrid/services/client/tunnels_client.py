"""The client of tunnels, for customers and supervisors: signed requests, and WebSockets to the services."""

from __future__ import annotations

from typing import Protocol
from urllib.parse import urlsplit

import aiohttp

from deepgrid.errors import ServiceError
from deepgrid.lifecycle.job import Job
from deepgrid.safe_http import is_loopback, tls_of
from deepgrid.services.client import answers
from deepgrid.services.client.services_client import ServicesClient
from deepgrid.services.tunnels.secure_channel import (
    LONGEST_ANSWER,
    MAX_SEALED,
    Invitation,
    Invitations,
    OpeningTunnel,
    TunnelToken,
)

CONNECT_WITHIN_S = 20.0
HEARTBEAT_S = 20.0  # between pings, which also keep proxies from closing an idle connection


class TunnelSocket(Protocol):
    """Messages to and from the other side of a tunnel."""

    async def send(self, data: bytes) -> None:
        """Send a message. Waits while the other side does not read. Raises ConnectionError when it has left."""
        ...

    async def receive(self) -> bytes:
        """Return the next message; none when the other side has left."""
        ...

    async def close(self) -> None: ...


class TunnelsClient:
    """Tunnels of one account. Close it after the tunnels."""

    def __init__(self, services: ServicesClient, authorities: str | None = None) -> None:
        self._services = services
        self._authorities = authorities
        self._http: aiohttp.ClientSession | None = None

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
        base = self._services.base_url
        url = f"ws{base.removeprefix('http')}/v1/tunnels/{provider}/ends/{token}"
        if self._http is None:
            host = urlsplit(base).hostname or ""
            tls = aiohttp.TCPConnector(ssl=tls_of(base, self._authorities) or True, limit=0)
            timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_WITHIN_S, sock_connect=CONNECT_WITHIN_S)
            self._http = aiohttp.ClientSession(connector=tls, timeout=timeout, trust_env=not is_loopback(host))
        try:
            socket = await self._http.ws_connect(
                url, max_msg_size=MAX_SEALED + LONGEST_ANSWER, heartbeat=HEARTBEAT_S, compress=0
            )
        except (aiohttp.ClientError, OSError, TimeoutError):
            raise ServiceError(f"The grid's services at {base} do not open a WebSocket.") from None
        return _Socket(socket)

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()


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
