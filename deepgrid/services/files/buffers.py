"""Memory for parts in transit to the store. It is used again: new memory costs more time than encryption does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

# Variables of the services' process. Threads that encrypt share freed memory (glibc), instead of each keeping its own.
ALLOCATOR = {"MALLOC_ARENA_MAX": "2"}


class Buffers:
    """At most `count` buffers of `size` bytes. A task that needs another one waits. `lent` are in use."""

    def __init__(self, count: int, size: int) -> None:
        self._turns = asyncio.Semaphore(count)
        self._size = size
        self._free: list[bytearray] = []
        self.lent = 0

    @asynccontextmanager
    async def borrow(self) -> AsyncIterator[bytearray]:
        """Lend a buffer, with the content of its last use. After an error it is dropped: a thread may still use it."""
        async with self._turns:
            buffer = self._free.pop() if self._free else bytearray(self._size)
            self.lent += 1
            try:
                yield buffer
            finally:
                self.lent -= 1
            self._free.append(buffer)
