"""A node: what is asked of it goes through web3, and what goes wrong comes out as errors of our own classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deepgrid.chain.node.node_errors import Asked, Request

REQUEST_TIMEOUT_S = 15.0


class Rpc:
    """A node, made inside a running event loop: `w3` is web3's client of it, `call` and `batch` take raw JSON-RPC.

    Each raises ChainError (transient) when the node cannot be reached or answers nonsense, and NodeRefused
    for an error of the node itself. A result of an unexpected shape makes web3 stumble: see `making_sense`.
    """

    def __init__(self, url: str, timeout_s: float = REQUEST_TIMEOUT_S, asked: Asked = lambda *_: None) -> None:
        from web3 import AsyncWeb3  # here, because importing web3 takes half a second

        from deepgrid.chain.node.http_provider import HttpProvider

        self._provider = HttpProvider(url, timeout_s, asked)
        self.host = self._provider.host
        self.w3 = AsyncWeb3(self._provider, middleware=[])  # that it comes with asks more than it is asked

    async def call(self, method: str, *params: Any) -> Any:
        """Result of one request, as the node gives it."""
        return (await self.batch([(method, params)]))[0]

    async def batch(self, requests: Sequence[Request]) -> list[Any]:
        """Results of many requests in order, as the node gives them; the first refused one raises NodeRefused."""
        # Not web3's own batch, which fails as a whole for one block or receipt that is not there.
        answers = await self._provider.make_batch_request(requests)
        return [answer["result"] for answer in answers]

    async def close(self) -> None:
        await self._provider.disconnect()
