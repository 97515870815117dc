"""JSON-RPC requests to a node through web3, with failures as errors of our own classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deepgrid.chain.node.node_errors import Asked, Request

REQUEST_TIMEOUT_S = 15.0


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
        from web3 import AsyncWeb3  # here, because importing web3 takes half a second

        from deepgrid.chain.node.http_provider import HttpProvider

        self._provider = HttpProvider(url, timeout_s, asked, authorities)
        self.host = self._provider.host
        self.w3 = AsyncWeb3(self._provider, middleware=[])  # web3's default middleware sends requests of its own

    async def call(self, method: str, *params: Any) -> Any:
        """Raw result of one request."""
        return (await self.batch([(method, params)]))[0]

    async def batch(self, requests: Sequence[Request]) -> list[Any]:
        """Raw results of many requests, in order. The first refused one raises NodeRefused."""
        # web3's own batch would fail as a whole for one missing block or receipt.
        answers = await self._provider.make_batch_request(requests)
        return [answer["result"] for answer in answers]

    async def close(self) -> None:
        await self._provider.disconnect()
