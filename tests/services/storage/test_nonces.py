"""A nonce is used once, even when many requests share a transaction."""

from __future__ import annotations

import asyncio
import time

from deepgrid.services.signing.request_signing import Verified, sign, verify
from deepgrid.services.storage.replays import Nonces
from tests.services.support import ACCOUNTS, DOMAIN, Grid

PATH = "/v1/jobs/1/log?offset=0&wait=20"


def a_request() -> Verified:
    now = int(time.time())
    return verify(DOMAIN, "GET", PATH, b"", sign(ACCOUNTS["customer"], DOMAIN, "GET", PATH, b"", now), now)


async def test_nonces_that_come_together_are_each_used_once(grid: Grid) -> None:
    """The second object stands for another process, which does not know the memory of the first one."""
    one, other = Nonces(grid.context.database), Nonces(grid.context.database)
    requests = [a_request() for _ in range(20)]
    replayed = requests[7]
    assert await other.use_up(replayed)
    found = await asyncio.gather(*(one.use_up(request) for request in requests))
    assert [request for request, fresh in zip(requests, found, strict=True) if not fresh] == [replayed]
    again = await asyncio.gather(*(nonces.use_up(request) for request in requests for nonces in (one, other)))
    assert not any(again)


async def test_a_request_that_is_cut_off_does_not_stop_the_others(grid: Grid) -> None:
    nonces = Nonces(grid.context.database)
    tasks = [asyncio.create_task(nonces.use_up(a_request())) for _ in range(10)]
    await asyncio.sleep(0)
    tasks[3].cancel()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(found.pop(3), asyncio.CancelledError)
    assert found == [True] * 9
    await nonces.close()
