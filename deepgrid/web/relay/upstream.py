"""The node behind the relay: gathers reads of the same moment into batches. Nothing of its URL gets out."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from typing import Any
from urllib.parse import urlsplit

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector
from pydantic_core import from_json

from deepgrid.secure_url import is_loopback, trusting
from deepgrid.web.relay.read_rules import SENT, Read
from deepgrid.web.relay.rpc_answers import FAILED, LIMIT, Answer, Fault, error, of_node, silent
from deepgrid.web.settings import WebLimits

logger = logging.getLogger(__name__)

Waiting = tuple[Read, "asyncio.Future[Answer]"]


class _Unusable(Exception):
    """The node did not answer to a batch as a whole. `splits`: a smaller batch may succeed."""

    def __init__(self, reason: str, *, splits: bool = False) -> None:
        super().__init__(reason)
        self.splits = splits


class Upstream:
    """The node at `url`. Made inside a running event loop; `close` ends it."""

    def __init__(self, url: str, limits: WebLimits, authorities: str | None = None) -> None:
        self._url, self._limits = url, limits
        self._session = ClientSession(
            connector=TCPConnector(ssl=trusting(authorities)) if authorities else None,
            timeout=ClientTimeout(total=limits.node_within_s),
            headers={"Content-Type": "application/json"},
            trust_env=not is_loopback(urlsplit(url).hostname or ""),
        )
        self._waiting: deque[Waiting] = deque()
        self._sending: asyncio.Task[None] | None = None
        self._exchanges: set[asyncio.Task[None]] = set()
        self._places = asyncio.Semaphore(limits.node_batches_at_once)
        self._is_down = False
        self.batches = self.reads = 0  # exchanges with the node, and reads in them

    def ask(self, read: Read) -> asyncio.Future[Answer]:
        """The answer to a read, with others in one batch. Raises Fault if too many wait."""
        if len(self._waiting) >= self._limits.reads_waiting:
            raise Fault(LIMIT, "too many reads wait for the chain's node; try again")
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((read, future))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_batches())
        return future

    async def close(self) -> None:
        tasks = [*self._exchanges, *([self._sending] if self._sending else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for _, future in self._waiting:
            future.cancel()
        await self._session.close()

    async def _send_batches(self) -> None:
        """Send what waits, one batch per moment, until nothing waits."""
        while self._waiting:
            await asyncio.sleep(self._limits.gather_s)
            await self._places.acquire()
            count = min(self._limits.node_batch, len(self._waiting))
            batch = [self._waiting.popleft() for _ in range(count)]
            task = asyncio.create_task(self._exchange(batch))
            self._exchanges.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._exchanges.discard(task)
        self._places.release()

    async def _exchange(self, batch: list[Waiting]) -> None:
        """Answer all reads of the batch, whatever happens."""
        try:
            await self._answer(batch)
        finally:
            for _, future in batch:
                if not future.done():
                    future.set_result(silent())

    async def _answer(self, batch: list[Waiting]) -> None:
        try:
            items = await self._post([read for read, _ in batch])
        except _Unusable as fault:
            # A large answer, or a batch that the node refuses as a whole. No transaction is sent twice.
            if fault.splits and len(batch) > 1 and not any(read.method == SENT for read, _ in batch):
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
        for number, (read, future) in enumerate(batch):
            item = items.get(number)
            answer = silent() if item is None else of_node(read.method, item, self._limits.answer_bytes)
            if not future.done():
                future.set_result(answer)

    @staticmethod
    def _settle(batch: list[Waiting], answer: Answer) -> None:
        for _, future in batch:
            if not future.done():
                future.set_result(answer)

    async def _post(self, reads: list[Read]) -> dict[int, dict[str, Any]]:
        """The node's answers by position. The sentence of an error may be logged, so it holds nothing of the URL."""
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
