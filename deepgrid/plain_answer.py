"""Reads answers of HTTP servers that are not trusted: they have a limit, and nothing is decompressed.

A compressed answer may become a thousand times as large, and each further coding that it names does so again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

UNCOMPRESSED = {"Accept-Encoding": "identity"}  # headers of each request


class ExcessiveAnswer(ValueError):
    """An answer is too large, or compressed. The text is the end of a sentence about it."""


async def read_answer(answer: httpx.Response, most_bytes: int) -> bytes:
    """The body of an answer that was requested by `stream`. Raises ExcessiveAnswer."""
    if answer.headers.get("Content-Encoding", "identity") != "identity":
        raise ExcessiveAnswer("is compressed, which was not asked for")
    content = bytearray()
    async for piece in answer.aiter_raw():
        content += piece
        if len(content) > most_bytes:
            raise ExcessiveAnswer(f"has more than {most_bytes} bytes")
    return bytes(content)
