"""`POST /rpc`: JSON-RPC for pages, single calls and batches."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

from pydantic_core import from_json
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from deepgrid.chain.book import AddressBook
from deepgrid.gateway.answering import read_json, send_answer
from deepgrid.gateway.relay import rpc_answers as rpc
from deepgrid.gateway.relay.read_rules import Rules
from deepgrid.gateway.relay.rpc_answers import Answer, Fault, TooMuch
from deepgrid.gateway.relay.shared_reads import Head, SharedReads
from deepgrid.gateway.relay.upstream import Upstream
from deepgrid.gateway.settings import WebSettings
from deepgrid.services.admission.fair_queue import FairQueue
from deepgrid.services.admission.limits import Buckets, Shares, source_in
from deepgrid.services.refusal import Refusal

LONGEST_ID = 100
Pending = Answer | asyncio.Future[Answer]


class Relay:
    """Reads of the grid of `book` for web pages. Made inside a running event loop; `close` ends it."""

    def __init__(self, book: AddressBook, settings: WebSettings, clock: Callable[[], float] = time.monotonic) -> None:
        limits = settings.limits
        contracts = (book.meta_scheduler, book.credit, book.provider_manager)
        self._limits = limits
        self._rules = Rules(
            book.chain_id, frozenset(map(str.lower, contracts)), limits, transactions=settings.transactions
        )
        self.upstream = Upstream(book.rpc_url, limits, book.authorities, clock)
        self._shared = SharedReads(self.upstream, limits, clock)
        self._chain_id = rpc.result(hex(book.chain_id))
        self._network = rpc.result(str(book.chain_id))
        self._running = Shares(limits.running_per_address, limits.running)
        self._held = Shares(limits.held_bytes_per_address, limits.held_bytes)
        self._turns = FairQueue(1, limits.running_per_address, limits.turn_wait_s)
        self._calls = Buckets(limits.calls_per_address, clock)

    async def close(self) -> None:
        await self._shared.close()
        await self.upstream.close()

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Every refusal is an error of JSON-RPC without an id."""
        source = source_in(scope)
        try:
            with self._running.hold(source) as one, self._held.hold(source, self._size_of(scope)) as bytes_too:
                if not one or not bytes_too:
                    raise Refusal(429, "too many requests at once", retry_after_s=1)
                body = await read_json(scope, receive, self._limits.body_bytes, self._limits.body_within_s)
                content = await self._content(body, source)
            await send_answer(send, 200, content)
        except Fault as fault:
            await send_answer(send, 200, rpc.full_answer(b"null", fault.answer))
        except Refusal as refusal:
            code = rpc.LIMIT if refusal.status in (413, 429) else rpc.INVALID
            content = rpc.full_answer(b"null", rpc.error(code, refusal.sentence))
            await send_answer(send, refusal.status, content, headers=refusal.headers())

    def _size_of(self, scope: Scope) -> int:
        """Return the largest size of a request's body."""
        told = Headers(scope=scope).get("content-length", "")
        return min(int(told), self._limits.body_bytes) if told.isdecimal() else self._limits.body_bytes

    async def _content(self, body: bytes, source: str) -> bytes:
        head = await self._shared.head()
        async with self._turns.turn(source):  # reading the calls takes the time of all requests
            asked, calls = self._calls_in(body, source)
            pending = self._ask_all(calls, head, source)
        parts, size = [], 0
        for call, one in zip(calls, pending, strict=True):
            found = one if isinstance(one, Answer) else await asyncio.shield(one)
            if size + len(found.member) > self._limits.batch_bytes:
                found = rpc.error(rpc.LIMIT, "the answers of this batch are too large; ask for fewer at once")
            size += len(found.member)
            parts.append(rpc.full_answer(_id_of(call), found))
        return b"[" + b",".join(parts) + b"]" if isinstance(asked, list) else parts[0]

    def _calls_in(self, body: bytes, source: str) -> tuple[object, list[object]]:
        """Return the content of a body, and its calls.

        Raises Fault, and refuses with 429 above the rate of the address.
        """
        try:
            asked = from_json(body)  # unlike json.loads, it bounds the depth itself
        except ValueError:
            raise Fault(rpc.PARSE, "the body is not JSON") from None
        calls = asked if isinstance(asked, list) else [asked]
        if not calls or len(calls) > self._limits.calls_per_batch:
            raise Fault(rpc.INVALID, f"a batch holds 1 to {self._limits.calls_per_batch} calls")
        self._calls.require(source, len(calls), "too many calls")
        return asked, calls

    def _ask_all(self, calls: list[object], head: Head | None, source: str) -> list[Pending]:
        """Return the answers to calls, or the waits for them. All are asked at once, so that they share a batch."""
        pending: list[Pending] = []
        for call in calls:
            try:
                pending.append(self._ask(call, head, source))
            except TooMuch as fault:  # looking at the others would take the time of other addresses
                return pending + [fault.answer] * (len(calls) - len(pending))
        return pending

    def _ask(self, call: object, head: Head | None, source: str) -> Pending:
        """Return the answer to a call, or the wait for it. Raises TooMuch."""
        if not isinstance(call, dict) or not isinstance(call.get("method"), str):
            return rpc.error(rpc.INVALID, "a call is an object with a method")
        params = call.get("params", [])
        if not isinstance(params, list):
            return rpc.error(rpc.INVALID, "the params of a call are a list")
        try:
            return self._answer_to(call["method"], params, head, source)
        except TooMuch:
            raise
        except Fault as fault:
            return fault.answer
        except RecursionError:
            return rpc.error(rpc.INVALID, "the call is nested too deeply")

    def _answer_to(self, method: str, params: list[Any], head: Head | None, source: str) -> Pending:
        if method == "eth_chainId":
            return self._chain_id
        if method == "net_version":
            return self._network
        if head is None:
            return rpc.silent()
        if method == "eth_blockNumber":
            return head.number_answer
        if method == "eth_getBlockByNumber" and params[:1] == ["latest"] and params[1:] in ([], [False]):
            return head.block
        return self._shared.ask(self._rules.read(method, params, head.number), head, source)


def _id_of(call: object) -> bytes:
    """Return the id of a call as JSON; null if it has none that is allowed."""
    given = call.get("id") if isinstance(call, dict) else None
    if type(given) is int or (isinstance(given, str) and len(given) <= LONGEST_ID):
        coded = json.dumps(given).encode()
        return coded if len(coded) <= 6 * LONGEST_ID else b"null"
    return b"null"
