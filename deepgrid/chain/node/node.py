"""A node of one chain: JSON-RPC requests, the chain's id, blocks, gas and code.

Failures are errors of our own classes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from deepgrid.chain.node.log_pages import LogPages
from deepgrid.chain.node.node_errors import Asked, NodeRefused, Request, making_sense
from deepgrid.chain.node.own_writes import OwnWrites, as_of, height, unless_behind
from deepgrid.chain.node.pace import Pace
from deepgrid.errors import ChainError

if TYPE_CHECKING:
    from web3 import AsyncWeb3

REQUEST_TIMEOUT_S = 15.0
MINED_POLL_S = 0.25
BEHIND_ATTEMPTS = 20  # to get the logs of a block that the node does not have yet


@dataclass(frozen=True, slots=True)
class Block:
    """The identity of a block; `timestamp` is in unix seconds."""

    number: int
    hash: str
    parent_hash: str
    timestamp: int

    @classmethod
    def of(cls, raw: dict[str, Any]) -> Block:
        with making_sense("a block"):
            return cls(int(raw["number"], 16), raw["hash"], raw["parentHash"], int(raw["timestamp"], 16))


class Rpc:
    """A node, made inside a running event loop. `w3` is web3's client; `call` and `batch` take raw JSON-RPC.

    All raise ChainError (transient) if the node cannot be reached or its answer makes no sense, and NodeRefused for
    an error of the node itself. For a result of unexpected shape see `making_sense`.
    """

    def __init__(
        self,
        url: str,
        timeout_s: float = REQUEST_TIMEOUT_S,
        asked: Asked = lambda *_: None,
        authorities: str | None = None,
    ) -> None:
        from deepgrid.chain.node.http_node import HttpNode  # here: aiohttp takes a tenth of a second to load

        self._http = HttpNode(url, timeout_s, asked, authorities)
        self.host = self._http.host

    @cached_property
    def w3(self) -> AsyncWeb3[Any]:
        from deepgrid.chain.node.web3_provider import web3_of  # here: web3 takes a tenth of a second to load

        return web3_of(self._http)

    async def call(self, method: str, *params: Any) -> Any:
        """Raw result of one request."""
        return (await self.batch([(method, params)]))[0]

    async def batch(self, requests: Sequence[Request]) -> list[Any]:
        """Raw results of many requests, in order. The first refused one raises NodeRefused."""
        found = await self.results(requests)
        for result in found:
            if isinstance(result, NodeRefused):
                raise result
        return found

    async def results(self, requests: Sequence[Request]) -> list[Any]:
        """Raw results of many requests, in order, with a NodeRefused in place of the result of a refused one."""
        # web3's own batch would fail as a whole for one missing block or receipt.
        return await self._http.results(requests)

    @property
    def largest_batch(self) -> int:
        """Number of requests that the node takes in one HTTP request, as far as its answers have shown."""
        return self._http.largest_batch

    @property
    def pace(self) -> Pace:
        """The pauses that the node's rate limit asks for."""
        return self._http.pace

    async def close(self) -> None:
        await self._http.close()

    async def chain_id(self) -> int:
        """Return the id of the chain that the node is on."""
        answer = await self.call("eth_chainId")
        with making_sense("the chain's id"):
            return int(answer, 16)


class Node:
    """The chain itself, without contracts. As a context manager it closes its connection."""

    def __init__(self, rpc: Rpc, chain_id: int) -> None:
        self.rpc = rpc
        self.chain_id = chain_id
        self.own_writes = OwnWrites()
        self.log_pages = LogPages()

    @classmethod
    async def at(cls, rpc_url: str, authorities: str | None = None) -> Node:
        """Return the node at `rpc_url`, on any chain.

        `authorities` are certificates (PEM) to trust besides the system's.
        """
        rpc = Rpc(rpc_url, authorities=authorities)
        try:
            return cls(rpc, await rpc.chain_id())
        except BaseException:
            await rpc.close()
            raise

    async def newest(self, requests: Sequence[Request]) -> list[Any]:
        """Return raw results of requests about the newest block, which is never before one with an own transaction.

        The first refused request raises NodeRefused.
        """
        if not self.own_writes.block:
            return await self.rpc.batch(requests)
        found = await self.own_writes.read(lambda: self._newest(requests))
        for result in found:
            if isinstance(result, NodeRefused):
                raise result
        return found

    async def _newest(self, requests: Sequence[Request]) -> list[Any] | None:
        """Return the results; None if the node that answered lags behind."""
        if len(requests) < self.rpc.largest_batch:  # one node answers to all of one batch
            number, *results = await self.rpc.results([("eth_blockNumber", []), *requests])
            return None if self.own_writes.is_behind(height(number)) else results
        number = height((await self.rpc.results([("eth_blockNumber", [])]))[0])
        if self.own_writes.is_behind(number):
            return None
        return unless_behind(await self.rpc.results([as_of(one, number) for one in requests]))

    async def head(self) -> Block:
        """Return the newest block."""

        async def read() -> Block | None:
            block = Block.of(await self.rpc.call("eth_getBlockByNumber", "latest", False))
            return None if self.own_writes.is_behind(block.number) else block

        return await self.own_writes.read(read)

    async def now(self) -> int:
        """Return the time of the newest block, unix seconds."""
        return (await self.head()).timestamp

    async def next_block_time(self) -> int:
        """Return about when the next block is made, unix seconds. A quiet chain's newest block may be hours old."""
        return max(await self.now(), int(time.time()))

    async def blocks(self, numbers: list[int]) -> list[Block | None]:
        """Return the blocks with these numbers; None for a number that the chain does not have (any more)."""
        raws = await self.rpc.batch([("eth_getBlockByNumber", [hex(number), False]) for number in numbers])
        return [None if raw is None else Block.of(raw) for raw in raws]

    async def logs(self, address: str, first: int, last: int | None, topics: Sequence[Any] = ()) -> Any:
        """Return a contract's raw logs in these blocks (inclusive), in order. A `last` of None is the newest block."""
        if last is None and self.log_pages.longest is None:
            try:
                return await self.rpc.call("eth_getLogs", _wanted_logs(address, first, "latest", topics))
            except NodeRefused as refused:
                if refused.transient:
                    raise
        if last is None:
            last = (await self.head()).number
        return await self.log_pages.read(first, last, lambda low, high: self._logs(address, low, high, topics))

    async def _logs(self, address: str, first: int, last: int, topics: Sequence[Any]) -> list[Any]:
        """Return the logs of these blocks. A node that lags behind would leave out some of them."""

        wanted = _wanted_logs(address, first, hex(last), topics)
        for _ in range(BEHIND_ATTEMPTS):
            number, logs = await self.rpc.results([("eth_blockNumber", []), ("eth_getLogs", [wanted])])
            if height(number) >= last:
                if isinstance(logs, NodeRefused):
                    raise logs
                return list(logs)
            await asyncio.sleep(self.own_writes.pause_s)
        raise ChainError(f"The chain's node does not have block {last}.")

    async def gas_money(self, address: str) -> int:
        """Return balance of `address` in the chain's own currency, which pays for transactions, in wei."""
        (answer,) = await self.newest([("eth_getBalance", [address, "latest"])])
        with making_sense("a balance"):
            return int(answer, 16)

    async def transaction_counts(self, address: str) -> tuple[int, int]:
        """Return the number of transactions of `address` that are mined, and that the node knows in all."""
        mined, pending, _ = await self.nonces(address)
        return mined, pending

    async def nonces(self, address: str) -> tuple[int, int, int]:
        """Return both numbers, and the number of a block that the node has."""
        counts = [("eth_getTransactionCount", [address, "latest"]), ("eth_getTransactionCount", [address, "pending"])]
        answers = await self.newest([("eth_blockNumber", []), *counts])
        with making_sense("a nonce"):
            block, mined, pending = (int(answer, 16) for answer in answers)
        return mined, pending, block

    async def until_mined(
        self, address: str, within_s: float, *, poll_s: float = MINED_POLL_S, waits: Callable[[], None] = lambda: None
    ) -> None:
        """Wait until the transactions of `address` are mined that the node knows now.

        A process that was killed may have left some. Before that, the chain does not say what they did. `waits` is
        called once if there are any.

        Raises ChainError (transient) if they are not mined within `within_s` seconds.
        """
        deadline = asyncio.get_running_loop().time() + within_s
        mined, sent = await self.transaction_counts(address)
        if mined < sent:
            waits()
        while mined < sent:
            if asyncio.get_running_loop().time() > deadline:
                raise ChainError(
                    f"Earlier transactions of {address} are not mined after {within_s:.0f} s, so the chain does not say"
                    " yet what they did.",
                    next_step="Try again when they are mined.",
                )
            await asyncio.sleep(poll_s)
            mined, _ = await self.transaction_counts(address)

    async def gas_price(self) -> int:
        """Return the node's estimate of the current price per unit of gas, in wei."""
        answer = await self.rpc.call("eth_gasPrice")
        with making_sense("a price of gas"):
            return int(answer, 16)

    async def has_code(self, addresses: list[str]) -> list[bool]:
        """Return whether a contract exists at each of `addresses`."""
        codes = await self.newest([("eth_getCode", [address, "latest"]) for address in addresses])
        with making_sense("code"):
            return [len(code) > 2 for code in codes]

    async def close(self) -> None:
        await self.rpc.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _wanted_logs(address: str, first: int, last: str, topics: Sequence[Any]) -> dict[str, Any]:
    return {"address": address, "fromBlock": hex(first), "toBlock": last, "topics": topics}
