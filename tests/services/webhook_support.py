"""A webhook on this machine that keeps what it gets."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from deepgrid.services.admission.webhook_targets import SIGNATURE_HEADER


@dataclass
class Webhook:
    """What came in. The first `failures` requests are refused."""

    url: str = ""
    failures: int = 0
    redirect: str = ""
    requests: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.requests]

    def is_signed_by(self, key: str) -> bool:
        """Return whether all requests are signed by this key."""
        made = [hmac.new(key.encode(), body, hashlib.sha256).hexdigest() for _, body in self.requests]
        return [head[SIGNATURE_HEADER.lower()] for head, _ in self.requests] == [f"sha256={one}" for one in made]

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        headers = dict(line.lower().split(": ", 1) for line in head.splitlines()[1:] if ": " in line)
        body = await reader.readexactly(int(headers["content-length"]))
        if self.failures:
            self.failures -= 1
            answer = "HTTP/1.1 503 later\r\nContent-Length: 0\r\n\r\n"
        elif self.redirect:
            answer = f"HTTP/1.1 307 there\r\nLocation: {self.redirect}\r\nContent-Length: 0\r\n\r\n"
        else:
            self.requests.append((headers, body))
            answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        writer.write(answer.encode())
        await writer.drain()
        writer.close()


@asynccontextmanager
async def webhook() -> AsyncIterator[Webhook]:
    """Run a webhook on a free port."""
    made = Webhook()
    server = await asyncio.start_server(made.take, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook?token=secret"
    async with server:
        yield made
