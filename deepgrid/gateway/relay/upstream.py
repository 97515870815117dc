"""The node behind the relay: gathers reads of the same moment into batches. Nothing of its URL gets out.

Source addresses take turns. What a read may cost the node is its price, and prices bound a batch and a turn. So no page
waits for more than the batches on their way and one turn of each other address.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector
from pydantic_core import from_json

from deepgrid.gateway.relay.read_rules import SENT, Read
from deepgrid.gateway.relay.rpc_answers import FAILED, Answer, TooMuch, error, of_node, silent
from deepgrid.gateway.settings import WebLimits
from deepgrid.safe_http import is_loopback, trusting
from deepgrid.services.admission.fair_queue import Turns
from deepgrid.services.admission.limits import Buckets, Shares

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


class _Unusable(Exception):
    """The node did not answer to a batch as a whole. `splits`: a smaller batch may succeed."""

    def __init__(self, reason: str, *, splits: bool = False) -> None:
        super().__init__(reason)
        self.splits = splits


class Upstream:
    """The node at `url`. Made inside a running event loop; `close` ends it."""

    def __init__(
        self, url: str, limits: WebLimits, authorities: str | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._url, self._limits = url, limits
        self._session = ClientSession(
            connector=TCPConnector(ssl=trusting(authorities)) if authorities else None,
            timeout=ClientTimeout(total=limits.node_within_s),
            headers={"Content-Type": "application/json"},
            trust_env=not is_loopback(urlsplit(url).hostname or ""),
        )
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
        await self._session.close()

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
        try:
            items = await self._post([waiting.read for waiting in batch])
        except _Unusable as fault:
            # A large answer, or a batch that the node refuses as a whole. No transaction is sent twice.
            if fault.splits and len(batch) > 1 and all(waiting.read.method != SENT for waiting in batch):
                middle = len(batch) // 2
                await self._answer(batch[:middle])
                await self._answer(batch[middle:])
                return
            if fault.splits:
                self._settle(batch, error(FAILED, "the answer is too large, or the chain's node refused the call"))
                return
            if not self._is_down:
                logger.warning("the relay's node does not answer, pages are told so: %s", fault)
            self._is_down = True
            self._settle(batch, silent())
            return
        if self._is_down:
            logger.info("the relay's node answers again")
        self._is_down = False
        for number, waiting in enumerate(batch):
            item = items.get(number)
            if item is None:
                self._settle([waiting], silent())
            elif not item.get("error") or not self._asks_again(waiting):
                self._settle([waiting], of_node(waiting.read.method, item, self._limits.answer_bytes))

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

    async def _post(self, reads: list[Read]) -> dict[int, dict[str, Any]]:
        """Return the node's answers by position.

        The sentence of an error may be logged, so it holds nothing of the URL.
        """
        calls = [
            {"jsonrpc": "2.0", "id": number, "method": read.method, "params": read.params}
            for number, read in enumerate(reads)
        ]
        self.batches += 1
        self.reads += len(reads)
        try:
            body = json.dumps(calls).encode()
            async with self._session.post(self._url, data=body, allow_redirects=False) as response:
                if response.status == 413:
                    raise _Unusable("HTTP status 413", splits=True)
                if response.status >= 300:
                    raise _Unusable(f"HTTP status {response.status}")
                content = bytearray()
                async for part in response.content.iter_any():
                    content += part
                    if len(content) > self._limits.node_answer_bytes:
                        raise _Unusable("its answer is too large", splits=True)
            found = from_json(content)
        except TimeoutError:
            raise _Unusable("no answer in time") from None
        except (ClientError, OSError) as fault:
            raise _Unusable(type(fault).__name__) from None
        except ValueError:
            raise _Unusable("its answer is not JSON") from None
        if isinstance(found, dict):
            raise _Unusable("it refused a batch", splits=True)
        if not isinstance(found, list):
            raise _Unusable("its answer is not JSON-RPC")
        return {item["id"]: item for item in found if isinstance(item, dict) and isinstance(item.get("id"), int)}
