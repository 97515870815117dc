"""What one HTTP request gets of a log: output from an offset on, and whether the log is complete."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field

from deepgrid.lifecycle.job import Job
from deepgrid.services.following.log_feed import Feed
from deepgrid.services.following.stored import Parts, is_over, pieces_from, state_of
from deepgrid.services.messages import MAX_LOG_CHUNK_BYTES


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Output for a reader: bytes from `offset` on, and whether the log is complete."""

    data: bytes = field(repr=False)
    offset: int
    final: bool
    claimed_at: int

    def headers(self) -> dict[str, str]:
        return {
            "X-Offset": str(self.offset),
            "X-Next-Offset": str(self.offset + len(self.data)),
            "X-Final": "true" if self.final else "false",
            "X-Claimed-At": str(self.claimed_at),
        }


async def excerpt_now(parts: Parts, job: Job, offset: int) -> Excerpt:
    """What the database has now."""
    async with parts.database.read() as session:
        if offset < 0:
            offset = max(0, (await state_of(parts, session, job)).size + offset)
        log, pieces = await pieces_from(parts, session, job.id, job.claimed_at, offset, MAX_LOG_CHUNK_BYTES)
        data = b"".join(piece.data for piece in pieces)
        final = offset + len(data) >= log.size and await is_over(parts, session, job, log)
    return Excerpt(data, offset, final, job.claimed_at)


async def excerpt_of(feed: Feed, offset: int) -> Excerpt:
    """What the followed log has now."""
    claimed_at = feed.claimed_at
    offset = feed.position(offset)
    pieces = await feed.pieces(claimed_at, offset, MAX_LOG_CHUNK_BYTES)
    final = bool(pieces) and pieces[-1].final
    return Excerpt(b"".join(piece.data for piece in pieces), offset, final, claimed_at)


async def wait_for_more(feed: Feed, reader: str, offset: int, wait_s: float) -> Excerpt:
    """Wait until there is output, the log ends, or the time is over. Refuses as `Feed.require`."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_s
    while True:
        news = feed.news
        feed.require(reader)
        excerpt = await excerpt_of(feed, offset)
        left = deadline - loop.time()
        if excerpt.data or excerpt.final or left <= 0:
            return excerpt
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(news.wait(), left)
