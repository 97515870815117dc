"""A node that misbehaves: an HTTP server with an answer per request body."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


@asynccontextmanager
async def odd_node(answer: Callable[[bytes], str], status: int = 200) -> AsyncIterator[str]:
    """Yield the URL of a server that answers with `answer(body)`."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        body = answer(await reader.readexactly(length))
        head_out = f"HTTP/1.1 {status} Whatever\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write((head_out + body).encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
