"""Posts to a customer's webhook. Only https, and only at public addresses that were checked at the connection.

The services run inside the operator's network. So a name is resolved once per connection, each address must be public,
and the connection goes to the checked address. Redirects are not followed, answers are not read.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import socket
from collections.abc import Iterable
from enum import Enum
from typing import Any
from urllib.parse import urlsplit

import httpcore
import httpx

from deepgrid.safe_http import fault_of, is_public

TIMEOUT_S = 10.0
MAX_URL_CHARS = 1000
SIGNATURE_HEADER = "X-Grid-Signature-256"


class Answer(Enum):
    """What a target did with a message. A silent one did not answer in time."""

    TAKEN = "taken"
    REFUSED = "refused"
    SILENT = "silent"


class PublicAddresses(httpcore.AsyncNetworkBackend):
    """Connects to public addresses only; with `private`, to all."""

    def __init__(self, *, private: bool = False) -> None:
        self._private = private
        self._backend = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to a checked address of the host."""
        address = await self.address_of(host, port)
        return await self._backend.connect_tcp(address, port, timeout, local_address, socket_options)

    async def address_of(self, host: str, port: int) -> str:
        """Return the first address of the host. Raises ConnectError if one of them is not public."""
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise httpcore.ConnectError("the name has no address") from None
        addresses = [str(where[0]).partition("%")[0] for *_, where in found]
        if not addresses or not (self._private or all(is_public(ipaddress.ip_address(one)) for one in addresses)):
            raise httpcore.ConnectError("the address is private")
        return addresses[0]

    async def connect_unix_socket(self, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        """Refuse sockets of this machine."""
        raise httpcore.ConnectError("no such target")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Targets:
    """Delivers to webhooks, each message within `timeout_s` seconds.

    `private` is for a network whose customers the operator trusts, and for tests.
    """

    def __init__(self, *, private: bool = False, timeout_s: float = TIMEOUT_S) -> None:
        self._private, self.timeout_s = private, timeout_s
        transport = httpx.AsyncHTTPTransport(verify=True)
        # httpx names no backend itself; the tests of attacks would see a release that ignores this one.
        transport._pool = httpcore.AsyncConnectionPool(
            ssl_context=httpx.create_ssl_context(),
            max_keepalive_connections=0,
            network_backend=PublicAddresses(private=private),
        )
        self._http = httpx.AsyncClient(transport=transport, timeout=timeout_s, trust_env=False)

    def fault_of(self, url: str) -> str:
        """Return why a URL is no target; empty if it is one."""
        if len(url) > MAX_URL_CHARS or not url.isprintable():
            return "is too long, or has odd characters"
        if fault := fault_of(url):
            return fault
        if not self._private and urlsplit(url).scheme != "https":
            return "must start with https://"
        return ""

    async def post(self, url: str, key: str, body: bytes) -> Answer:
        """Post the body, signed with HMAC-SHA-256."""
        signature = hmac.new(key.encode(), body, hashlib.sha256).hexdigest()
        headers = {"Content-Type": "application/json", SIGNATURE_HEADER: f"sha256={signature}"}
        sending = self._http.stream("POST", url, content=body, headers=headers)
        try:
            async with asyncio.timeout(self.timeout_s), sending as got:
                return Answer.TAKEN if got.is_success else Answer.REFUSED
        except (httpx.TimeoutException, TimeoutError):
            return Answer.SILENT
        except (httpx.HTTPError, httpx.InvalidURL, ValueError):
            return Answer.REFUSED

    async def close(self) -> None:
        await self._http.aclose()
