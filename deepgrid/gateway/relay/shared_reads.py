"""Reads shared by all pages: each is sent once per block, and pages that ask meanwhile wait for the same answer.

Answers about blocks well below the newest one are kept for good. All others are kept until there is a newer block,
because a reorganisation may replace recent blocks, and a lagging node of a pool may not have them.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic_core import from_json

from deepgrid.gateway.relay.read_rules import SENT, Read
from deepgrid.gateway.relay.rpc_answers import Answer, result
from deepgrid.gateway.relay.upstream import Upstream, Waiting
from deepgrid.gateway.settings import WebLimits

BLOCK = "eth_getBlockByNumber"
NEWEST = Read(BLOCK, ["latest", False])
OVERHEAD_BYTES = 500  # per cache entry, in addition to its key and answer


@dataclass(frozen=True, slots=True)
class Head:
    """The newest block, with its encoded answers."""

    number: int
    hash: str
    parent: str
    block: Answer
    number_answer: Answer

    @classmethod
    def of(cls, answer: Answer) -> Head | None:
        """Return the head in an answer of the node; None if it has none."""
        try:
            raw: Any = from_json(b"{" + answer.member + b"}")["result"]
            number = int(raw["number"], 16)
            return cls(number, str(raw["hash"]), str(raw["parentHash"]), answer, result(hex(number)))
        except (KeyError, TypeError, ValueError):
            return None


Key: TypeAlias = tuple[str, str]  # hash of the newest block (empty if the answer never changes), and the call


class SharedReads:
    """The reads of all pages. `clock` gives seconds."""

    def __init__(self, upstream: Upstream, limits: WebLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._upstream, self._limits, self._clock = upstream, limits, clock
        self._head: Head | None = None
        self._head_until = 0.0
        self._polling: asyncio.Task[Head | None] | None = None
        self._kept: OrderedDict[Key, Answer] = OrderedDict()
        self._kept_bytes = 0
        self._asked: dict[Key, Waiting] = {}

    async def head(self) -> Head | None:
        """Return the newest block, read at most once per `head_every_s`. None while the node does not answer.

        While the relay waits for a busy node, this is the previous block.
        """
        if self._clock() < self._head_until:
            return self._head
        if self._polling is None or self._polling.done():
            self._polling = asyncio.create_task(self._poll())
        polling = self._polling
        done, _ = await asyncio.wait({polling}, timeout=self._limits.head_wait_s if self._head else None)
        return polling.result() if done else self._head

    def ask(self, read: Read, head: Head, source: str) -> Answer | asyncio.Future[Answer]:
        """Return the answer for the newest block `head`, or a future for it.

        Raises TooMuch if the node must be asked, and too many reads wait.
        """
        key = "" if read.is_settled else head.hash, read.text
        if read.method == SENT:
            return self._upstream.ask(read, source).future
        if found := self._kept.get(key):
            self._kept.move_to_end(key)
            return found
        if waiting := self._asked.get(key):
            self._upstream.join(waiting, source)
            return waiting.future
        self._asked[key] = waiting = self._upstream.ask(read, source)
        waiting.future.add_done_callback(lambda done: self._keep(key, done))
        return waiting.future

    async def close(self) -> None:
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.gather(self._polling, return_exceptions=True)

    async def _poll(self) -> Head | None:
        found, before = Head.of(await self._upstream.ask_now(NEWEST)), self._head
        if found and before and not await self._follows(found, before):  # the chain was reorganised or reset
            self._kept.clear()
            self._asked.clear()
            self._kept_bytes = 0
        self._head, self._head_until = found, self._clock() + self._limits.head_every_s
        return found

    async def _follows(self, found: Head, before: Head) -> bool:
        """Return whether the block `before` is `found` or an ancestor of it, according to the node."""
        if found.hash == before.hash:
            return True
        if found.number <= before.number + 1:
            return found.number == before.number + 1 and found.parent == before.hash
        same_number = Head.of(await self._upstream.ask_now(Read(BLOCK, [hex(before.number), False])))
        return same_number is not None and same_number.hash == before.hash

    def _keep(self, key: Key, done: asyncio.Future[Answer]) -> None:
        waiting = self._asked.get(key)
        if waiting is None or waiting.future is not done:
            return  # the answer belongs to a chain that was reset
        del self._asked[key]
        if done.cancelled() or not done.result().is_final:
            return
        self._kept[key] = done.result()
        self._kept_bytes += _size(key, done.result())
        while self._kept_bytes > self._limits.cache_bytes:
            self._kept_bytes -= _size(*self._kept.popitem(last=False))


def _size(key: Key, answer: Answer) -> int:
    return len(key[1]) + len(answer.member) + OVERHEAD_BYTES
