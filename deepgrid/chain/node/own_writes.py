"""Reads after own transactions: no read returns a state before the newest block that has one of them.

The members of a pool of nodes do not always have the same newest block. After a transaction was mined, a member that
lags behind shows the state before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from deepgrid.chain.node.node_errors import LOST_STATE, NodeRefused, Request, making_sense

T = TypeVar("T")


@dataclass
class OwnWrites:
    """The newest block with an own transaction, and the patience with nodes that do not have it.

    Attributes:
        patience_s: The chain went back if no answer comes from that block or a later one within this time. Then the
            next answer counts.
        pause_s: Pause between two attempts.
        block: Number of that block; 0 before the first transaction.
    """

    patience_s: float = 10.0
    pause_s: float = 0.1
    block: int = field(default=0, init=False)
    _behind_since: float | None = field(default=None, init=False)

    def note(self, block: int) -> None:
        """Remember the block of a mined transaction."""
        self.block = max(self.block, block)

    def is_behind(self, newest: int) -> bool:
        """Return whether an answer from a node with this newest block shows a state before our own transaction."""
        now = asyncio.get_running_loop().time()
        if newest >= self.block:
            self._behind_since = None
        elif self._behind_since is None:
            self._behind_since = now
        elif now - self._behind_since >= self.patience_s:
            self.block, self._behind_since = newest, None
        return newest < self.block

    async def read(self, read: Callable[[], Awaitable[T | None]]) -> T:
        """Return the result of `read`, which returns None if the node that answered lags behind."""
        while True:
            result = await read()
            if result is not None:
                return result
            await asyncio.sleep(self.pause_s)


def as_of(request: Request, block: int) -> Request:
    """Return a request about the newest block as one about this block. Requests that name no block stay."""
    method, params = request
    if method == "eth_estimateGas":
        return method, [*params, hex(block)]
    return method, [*params[:-1], hex(block)] if params and params[-1] == "latest" else params


def unless_behind(results: Sequence[Any]) -> list[Any] | None:
    """Return the results; None if a node does not have the block that was named."""
    is_behind = any(isinstance(one, NodeRefused) and one.says(*LOST_STATE) for one in results)
    return None if is_behind else list(results)


def height(answer: Any) -> int:
    """Return the number in an answer to `eth_blockNumber`. Raises its refusal."""
    if isinstance(answer, NodeRefused):
        raise answer
    with making_sense("a block's number"):
        return int(answer, 16)
