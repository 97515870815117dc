"""web3's client of a node, over our connection."""

from __future__ import annotations

from typing import Any

import deepgrid.chain.node.light_keyfiles  # noqa: F401 # before web3, which then loads faster
from deepgrid.chain.node.http_node import HttpNode
from deepgrid.chain.node.node_errors import NodeRefused

from web3 import AsyncWeb3  # isort: skip
from web3.providers.async_base import AsyncJSONBaseProvider  # isort: skip
from web3.types import RPCResponse  # isort: skip


class Web3Provider(AsyncJSONBaseProvider):
    """Sends web3's requests over the connection of a node. Raises its errors."""

    global_ccip_read_enabled = False  # else a contract could make us fetch any URL

    def __init__(self, http: HttpNode) -> None:
        super().__init__()
        self._http = http

    async def make_request(self, method: str, params: Any) -> RPCResponse:
        (result,) = await self._http.results([(method, params)])
        if isinstance(result, NodeRefused):
            raise result
        return {"jsonrpc": "2.0", "id": 0, "result": result}


def web3_of(http: HttpNode) -> AsyncWeb3[Any]:
    """Return web3's client. Its usual middleware would send requests of its own."""
    return AsyncWeb3(Web3Provider(http), middleware=[])
