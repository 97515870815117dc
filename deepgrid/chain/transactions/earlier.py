"""Transactions of a key that an earlier process left on their way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from deepgrid.chain.node.node import Node
from deepgrid.errors import ChainError

POLL_S = 0.25


async def until_mined(
    node: Node, address: str, within_s: float, *, poll_s: float = POLL_S, waits: Callable[[], None] = lambda: None
) -> None:
    """Wait until the transactions of `address` are mined that the node knows now.

    A process that was killed may have left some. Before that, the chain does not say what they did. `waits` is called
    once if there are any.

    Raises ChainError (transient) if they are not mined within `within_s` seconds.
    """
    deadline = asyncio.get_running_loop().time() + within_s
    mined, sent = await node.transaction_counts(address)
    if mined < sent:
        waits()
    while mined < sent:
        if asyncio.get_running_loop().time() > deadline:
            raise ChainError(
                f"Earlier transactions of {address} are not mined after {within_s:.0f} s, so the chain does not say yet"
                " what they did.",
                next_step="Try again when they are mined.",
            )
        await asyncio.sleep(poll_s)
        mined, _ = await node.transaction_counts(address)
