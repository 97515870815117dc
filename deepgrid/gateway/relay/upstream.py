"""The node behind the relay: gathers reads of the same moment into batches. Nothing of its URL gets out.

Source addresses take turns. What a read may cost the node is its price, and prices bound a batch and a turn. So no page
waits for more than the batches in flight and one turn of each other address.

The connection learns which batches the node takes, and repeats what it refuses because it is busy (`HttpNode`). Events
are only taken from a member of a pool that has their last block, unless the node takes no batches.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from deepgrid.chain.node.http_node import LARGEST_BATCH, NO_BATCHES, AnswerTooLarge, HttpNode
from deepgrid.chain.node.node_errors import HttpRefused, NodeRefused
from deepgrid.errors import ChainError
from deepgrid.gateway.relay.read_rules import LOGS, SENT, Read
from deepgrid.gateway.relay.rpc_answers import FAILED, Answer, TooMuch, error, of_node, silent
from deepgrid.gateway.settings import WebLimits
from deepgrid.services.admission.fair_queue import Turns
from deepgrid.services.admission.limits import Buckets, Shares

HEIGHT = "eth_blockNumber"
BEHIND_ATTEMPTS = 10  # to get events of a block that a member of a pool does not have yet
BEHIND_PAUSE_S = 0.1
LEARNS_AGAIN_S = 600.0  # until a batch of full size is tried again

logger = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class Waiting:
    """A read of these source addresses. It is `sent` once, with the turn of any of them."""

    read: Read
    sources: list[str]
    future: asyncio.Future[Answer] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    sent: bool = False

    @property
    def price(self) -> int:
        return 0 if self.sent else self.read.price


class Upstream:
    """The node at `url`. Made inside a running event loop; `close` ends it."""

    def __init__(
        self, url: str, limits: WebLimits, authorities: str | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits, self._clock = limits, clock
        self._node = HttpNode(url, limits.node_within_s, self._count, authorities, limits.node_answer_bytes)
        self._node.pace.patience_s = limits.busy_within_s
        self._learns_again_at = clock()
        self._turns: Turns[Waiting] = Turns(limits.turn, lambda waiting: waiting.price)
        self._prices = Shares(limits.reads_waiting_per_address, limits.reads_waiting)
        self._rate = Buckets(limits.reads_per_address, clock)
        self._sending: asyncio.Task[None] | None = None
        self._exchanges: set[asyncio.Task[None]] = set()
        self._places = asyncio.Semaphore(limits.node_batches_at_once)
        self._is_down = False
        self.batches = self.reads = 0  # exchanges with the node, and reads in them

    def ask(self, read: Read, source: str) -> Waiting:
        """Return the wait for the answer to a read of this address. Raises TooMuch."""
        if not self._rate.take(source, read.price):
            raise TooMuch("too many reads of the chain; try again in a few seconds")
        if not self._prices.take(source, read.price):
            raise TooMuch("too many reads wait for the chain's node; try again")
        waiting = Waiting(read, [])
        waiting.future.add_done_callback(lambda _: self._prices.give_back(source, read.price))
        self.join(waiting, source)
        return waiting

    def join(self, waiting: Waiting, source: str) -> None:
        """Let a read go with the turn of this address too: the first who asked may have many others before it."""
        if source not in waiting.sources:
            waiting.sources.append(source)
            self._queue(waiting, source)

    async def ask_now(self, read: Read) -> Answer:
        """Return the answer to a read that waits for no turn."""
        waiting = Waiting(read, [], sent=True)
        await self._exchange([waiting])
        return waiting.future.result()

    def _queue(self, waiting: Waiting, source: str, *, first: bool = False) -> None:
        self._turns.add(source, waiting, first=first)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_batches())

    async def close(self) -> None:
        tasks = [*self._exchanges, *([self._sending] if self._sending else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for waiting in self._turns:
            waiting.future.cancel()
        await self._node.close()

    async def _send_batches(self) -> None:
        """Send what waits, one batch per moment, until nothing waits."""
        while len(self._turns):
            await asyncio.sleep(self._limits.gather_s)
            await self._places.acquire()
            batch = self._next_batch()
            if not batch:  # all went with the turns of other addresses
                self._places.release()
                continue
            task = asyncio.create_task(self._exchange(batch))
            self._exchanges.add(task)
            task.add_done_callback(self._ended)

    def _next_batch(self) -> list[Waiting]:
        batch: list[Waiting] = []
        spent = 0

        def fits(waiting: Waiting) -> bool:
            return spent + waiting.price <= self._limits.node_batch

        while (waiting := self._turns.take(fits)) is not None:
            if not waiting.sent:
                spent += waiting.price
                waiting.sent = True
                batch.append(waiting)
        return batch

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._exchanges.discard(task)
        self._places.release()

    async def _exchange(self, batch: list[Waiting]) -> None:
        """Answer all reads of the batch, even after a failure."""
        try:
            await self._answer(batch)
        except BaseException:
            self._settle(batch, silent())
            raise

    async def _answer(self, batch: list[Waiting]) -> None:
        if self._must_split(batch):
            return await self._answer_halves(batch)
        try:
            found = await self._results([waiting.read for waiting in batch])
        except ChainError as fault:
            # A large answer, or a batch that the node refuses as a whole: one read may be the reason.
            if isinstance(fault, AnswerTooLarge) or (isinstance(fault, HttpRefused) and fault.status in NO_BATCHES):
                if len(batch) > 1:
                    return await self._answer_halves(batch)
                return self._settle(
                    batch, error(FAILED, "the answer is too large, or the chain's node refused the call")
                )
            if not self._is_down:
                logger.warning("the relay's node does not answer, pages are told so: %s", fault.message)
            self._is_down = True
            return self._settle(batch, silent())
        if self._is_down:
            logger.info("the relay's node answers again")
        self._is_down = False
        for waiting, one in zip(batch, found, strict=True):
            if one is None:
                self._settle([waiting], silent())
            elif not isinstance(one[0], NodeRefused) or one[0].is_busy or not self._asks_again(waiting):
                self._settle([waiting], of_node(waiting.read.method, one[0], self._limits.answer_bytes))
        return None

    def _must_split(self, batch: list[Waiting]) -> bool:
        """Return whether the reads must not go together.

        A transaction goes alone, because what goes with it may be sent twice. Events go with the number of the node's
        newest block, in one exchange.
        """
        methods = {waiting.read.method for waiting in batch}
        is_too_large = LOGS in methods and 1 < self._node.largest_batch <= len(batch)
        return len(batch) > 1 and (SENT in methods or is_too_large)

    async def _answer_halves(self, batch: list[Waiting]) -> None:
        middle = len(batch) // 2
        await self._answer(batch[:middle])
        await self._answer(batch[middle:])

    async def _results(self, reads: list[Read]) -> list[tuple[Any] | None]:
        """Return the result or refusal of each read; None for events that the node does not have yet."""
        if self._clock() >= self._learns_again_at:  # what it refused once, it may take now
            self._node.largest_batch = LARGEST_BATCH
            self._learns_again_at = self._clock() + LEARNS_AGAIN_S
        found: list[tuple[Any] | None] = [None] * len(reads)
        left = list(range(len(reads)))
        for attempt in range(BEHIND_ATTEMPTS):
            if attempt:
                await asyncio.sleep(BEHIND_PAUSE_S)
            requests = [(reads[at].method, reads[at].params) for at in left]
            needs_height = self._node.largest_batch > 1 and any(reads[at].method == LOGS for at in left)
            results = await self._node.results([(HEIGHT, []), *requests] if needs_height else requests)
            newest = _height(results.pop(0)) if needs_height else None
            for at, result in zip(left, results, strict=True):
                found[at] = None if _is_behind(reads[at], newest) else (result,)
            left = [at for at in left if found[at] is None]
            if not left:
                break
        return found

    def _asks_again(self, waiting: Waiting) -> bool:
        """Return whether the read waits again, with more gas: it may have failed for too little.

        A failure costs its price.
        """
        larger = waiting.read.with_most_gas(self._limits)
        if larger is None or not any(self._rate.take(source, larger.price) for source in waiting.sources):
            return False
        waiting.read, waiting.sent = larger, False
        for source in waiting.sources:
            self._queue(waiting, source, first=True)
        return True

    @staticmethod
    def _settle(batch: list[Waiting], answer: Answer) -> None:
        for waiting in batch:
            if not waiting.future.done():
                waiting.future.set_result(answer)

    def _count(self, requests: int, _fault: ChainError | None) -> None:
        self.batches += 1
        self.reads += requests


def _height(result: Any) -> int:
    """Return the number of the node's newest block; -1 if it did not say it."""
    try:
        return int(result, 16)
    except (TypeError, ValueError):
        return -1


def _is_behind(read: Read, newest: int | None) -> bool:
    """Return whether the node whose `newest` block this is would leave out events."""
    return read.method == LOGS and newest is not None and newest < int(read.params[0]["toBlock"], 16)
