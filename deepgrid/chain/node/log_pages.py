"""Logs in pages that a node returns. How many blocks it accepts is learned from its refusals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from deepgrid.chain.node.node_errors import NodeRefused

T = TypeVar("T")


class LogPages:
    """The number of blocks whose logs a node returns at once, common to all reads of one connection.

    Attributes:
        longest: Longest range in blocks that was accepted after a longer one was refused. None while none was.
    """

    def __init__(self) -> None:
        self.longest: int | None = None

    async def read(self, first: int, last: int, read: Callable[[int, int], Awaitable[list[T]]]) -> list[T]:
        """Return what `read` returns for these blocks (inclusive), read in pages if need be."""
        found: list[T] = []
        while first <= last:
            until = last if self.longest is None else min(last, first + self.longest - 1)
            found += await self._page(first, until, read)
            first = until + 1
        return found

    async def _page(self, first: int, last: int, read: Callable[[int, int], Awaitable[list[T]]]) -> list[T]:
        """Read one page, or its halves if the node refuses it as too long."""
        try:
            return await read(first, last)
        except NodeRefused as refused:
            if refused.transient or first == last:
                raise
            holds_many = refused.holds_many_logs  # then the number of blocks is not at fault
        middle = (first + last) // 2
        found = await self._page(first, middle, read)
        if not holds_many:
            length = middle - first + 1
            self.longest = length if self.longest is None else min(self.longest, length)
        return found + await self.read(middle + 1, last, read)
