"""The connection to a node: one HTTP request per call or batch over persistent connections, with our own errors.

A node may refuse batches, or batches above a size: what it takes is learned from its refusals, and kept for the
connection. While it limits how often it may be asked, requests are repeated after a pause (`pace.py`), except
transactions: their sender repeats them.

web3's AsyncHTTPProvider has three faults. A cancelled request may leave a lock held, and every later request of the
process then waits forever (web3.py issue 3867); our requests are cancelled whenever a task ends. It connects again for
each request. It logs the node's URL, whose path holds the access key of a hosted node.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from math import inf
from typing import Any
from urllib.parse import urlsplit

from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientOSError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    ServerDisconnectedError,
    TCPConnector,
)

from deepgrid.chain.node.node_errors import Asked, HttpRefused, NodeRefused, Request, making_sense
from deepgrid.chain.node.pace import Pace, retry_after_s
from deepgrid.errors import ChainError
from deepgrid.safe_http import is_loopback, trusting
from deepgrid.spans import span

LARGEST_BATCH = 100
PARTS_AT_ONCE = 8  # of a node that takes small batches only
SENDING = "eth_sendRawTransaction"  # not repeated here: it may have arrived, and its nonce may be used by now
NO_BATCHES = (400, 405, 406, 413, 415, 422, 501)  # statuses with which nodes refuse a batch as such


class BatchRefused(ChainError):
    """The node refused a whole batch, which its parts may not be."""

    transient = False


class AnswerTooLarge(ChainError):
    """The answer to one exchange has more bytes than the caller takes."""

    transient = False


class HttpNode:
    """A node over HTTP, made inside a running event loop. Messages only name the host of its URL.

    It raises refusals itself, as NodeRefused, because web3's own errors do not always keep the revert data. Answers
    with more than `most_bytes` raise AnswerTooLarge.
    """

    def __init__(
        self, url: str, timeout_s: float, asked: Asked, authorities: str | None = None, most_bytes: float = inf
    ) -> None:
        self._asked, self._most_bytes = asked, most_bytes
        self._ids = count()
        self.host = urlsplit(url).netloc.rpartition("@")[2]
        self.pace = Pace()
        self.largest_batch = LARGEST_BATCH
        self._url = url
        self._session = ClientSession(
            connector=TCPConnector(ssl=trusting(authorities)) if authorities else None,
            timeout=ClientTimeout(total=timeout_s),
            headers={"Content-Type": "application/json"},
            trust_env=not is_loopback(urlsplit(url).hostname or ""),  # a proxy must not see local requests
        )

    async def close(self) -> None:
        await self._session.close()

    async def results(self, requests: Sequence[Request]) -> list[Any]:
        """Return the result of each request, in order; a NodeRefused for a refused one."""
        size = self.largest_batch
        parts = [requests[at : at + size] for at in range(0, len(requests), size)]
        at_once = 1 if size == LARGEST_BATCH else PARTS_AT_ONCE
        found: list[Any] = []
        for at in range(0, len(parts), at_once):
            some = await asyncio.gather(*map(self._part, parts[at : at + at_once]), return_exceptions=True)
            for results in some:
                if isinstance(results, BaseException):
                    raise results
                found += results
        return found

    async def _part(self, requests: Sequence[Request]) -> list[Any]:
        """Return the results of requests for one batch, or of its halves if the node refuses batches of this size."""
        try:
            return await self._patiently(requests)
        except BatchRefused:
            pass
        middle = len(requests) // 2
        results = [*await self._part(requests[:middle]), *await self.results(requests[middle:])]
        self.largest_batch = min(self.largest_batch, middle)
        return results

    async def _patiently(self, requests: Sequence[Request]) -> list[Any]:
        """Exchange a batch, and repeat what the node refuses because it is busy."""
        clock = asyncio.get_running_loop().time
        results: list[Any] = [None] * len(requests)
        left, failures, deadline = list(range(len(requests))), 0, clock() + self.pace.patience_s
        while True:
            await self.pace.turn()
            is_last = clock() >= deadline or requests[0][0] == SENDING
            asked_pause_s = None
            try:
                answers = await self._exchange_and_report([requests[at] for at in left])
            except HttpRefused as error:
                asked_pause_s = error.retry_after_s
                if error.is_busy:
                    self.pace.hold(failures, asked_pause_s)
                if is_last or not error.is_busy:
                    raise
            else:
                for at, answer in zip(left, answers, strict=True):
                    results[at] = answer
                left = [at for at in left if isinstance(results[at], NodeRefused) and results[at].is_busy]
                if left:
                    self.pace.hold(failures, None)
                if is_last or not left:
                    return results
            failures += 1

    async def _exchange_and_report(self, requests: Sequence[Request]) -> list[Any]:
        try:
            with span(", ".join(dict.fromkeys(method for method, _ in requests))):
                results = await self._exchange(requests)
        except ChainError as error:
            self._asked(len(requests), error)
            raise
        self._asked(len(requests), next((one for one in results if isinstance(one, NodeRefused)), None))
        return results

    async def _exchange(self, requests: Sequence[Request]) -> list[Any]:
        asked = [
            {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params} for method, params in requests
        ]
        many = len(asked) > 1
        body = json.dumps(asked if many else asked[0], default=_hexadecimal).encode()
        try:
            answer = await self._post(body, repeats=requests[0][0] != SENDING)
        except HttpRefused as error:
            if many and error.status in NO_BATCHES:
                raise BatchRefused(error.message) from None
            raise
        with making_sense(requests[0][0]):
            by_id = {item.get("id"): item for item in (answer if isinstance(answer, list) else [answer])}
        results = [self._result_of(one, by_id) for one in asked]
        if many and len(by_id) == 1 and isinstance(results[0], NodeRefused) and not results[0].transient:
            raise BatchRefused(results[0].message)  # the only answer to all of them
        return results

    def _result_of(self, asked: dict[str, Any], answers: dict[Any, dict[str, Any]]) -> Any:
        # A node that refuses a whole batch sends one answer without an id, or with the first one.
        only = next(iter(answers.values())) if len(answers) == 1 else {}
        answer = answers.get(asked["id"]) or answers.get(None) or (only if "error" in only else {})
        error = answer.get("error")
        if error is not None:
            if not isinstance(error, dict):
                raise ChainError(f"The chain's node at {self.host} answered with an error without content.")
            return NodeRefused(asked["method"], error)
        if answer.get("id") != asked["id"]:
            raise ChainError(f"The chain's node at {self.host} left a request unanswered.")
        return answer.get("result")

    async def _post(self, body: bytes, *, repeats: bool) -> Any:
        """Return the decoded answer. `repeats` posts once more if the connection breaks: it may have been idle."""
        if self._session.closed:
            raise ChainError(f"The connection to the chain's node at {self.host} was closed.", transient=False)
        try:
            async with self._session.post(self._url, data=body, allow_redirects=False) as response:
                return await self._content(response)
        except TimeoutError:
            raise ChainError(f"The chain's node at {self.host} did not answer in time.") from None
        except ClientError as error:
            is_broken = isinstance(error, (ServerDisconnectedError, ClientOSError))
            if repeats and is_broken and not isinstance(error, ClientConnectorError):
                return await self._post(body, repeats=False)
            raise ChainError(
                f"The chain's node at {self.host} cannot be reached.", next_step="Check that the grid is up."
            ) from None
        except (ValueError, RecursionError):
            raise ChainError(f"The chain's node at {self.host} answered something that is not JSON.") from None

    async def _content(self, response: ClientResponse) -> Any:
        """Return the decoded answer. Some nodes send a refusal in JSON-RPC with a status of failure."""
        content = bytearray()
        async for part in response.content.iter_any():
            content += part
            if len(content) > self._most_bytes:
                raise AnswerTooLarge(f"The answer of the chain's node at {self.host} is too large.")
        if response.status < 400:
            return json.loads(content)
        refused = HttpRefused(self.host, response.status, retry_after_s(response.headers.get("Retry-After")))
        if not refused.is_busy and refused.transient:
            with suppress(ValueError):
                answer: Any = json.loads(content)
                if isinstance(answer, list) or (isinstance(answer, dict) and isinstance(answer.get("error"), dict)):
                    return answer
        raise refused


def _hexadecimal(value: Any) -> str:
    """Return bytes of web3 as JSON-RPC has them."""
    return f"0x{bytes(value).hex()}"
