"""A node of one chain: the chain's id, blocks, gas and code."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from deepgrid.chain.node.node_errors import making_sense
from deepgrid.chain.node.rpc import Rpc


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


class Node:
    """The chain itself, without contracts. As a context manager it closes its connection."""

    def __init__(self, rpc: Rpc, chain_id: int) -> None:
        self.rpc = rpc
        self.chain_id = chain_id

    @classmethod
    async def at(cls, rpc_url: str, authorities: str | None = None) -> Node:
        """The node at `rpc_url`, on any chain. `authorities` are certificates (PEM) to trust besides the system's."""
        rpc = Rpc(rpc_url, authorities=authorities)
        try:
            return cls(rpc, await read_chain_id(rpc))
        except BaseException:
            await rpc.close()
            raise

    async def head(self) -> Block:
        """The newest block."""
        return Block.of(await self.rpc.call("eth_getBlockByNumber", "latest", False))

    async def now(self) -> int:
        """Time of the newest block, unix seconds."""
        return (await self.head()).timestamp

    async def blocks(self, numbers: list[int]) -> list[Block | None]:
        """The blocks with these numbers; None for a number that the chain does not have (any more)."""
        raws = await self.rpc.batch([("eth_getBlockByNumber", [hex(number), False]) for number in numbers])
        return [None if raw is None else Block.of(raw) for raw in raws]

    async def gas_money(self, address: str) -> int:
        """Balance of `address` in the chain's own currency, which pays for transactions, in wei."""
        answer = await self.rpc.call("eth_getBalance", address, "latest")
        with making_sense("a balance"):
            return int(answer, 16)

    async def transaction_counts(self, address: str) -> tuple[int, int]:
        """Number of transactions of `address` that are mined, and that the node knows in all."""
        answers = await self.rpc.batch(
            [("eth_getTransactionCount", [address, "latest"]), ("eth_getTransactionCount", [address, "pending"])]
        )
        with making_sense("a nonce"):
            mined, pending = (int(answer, 16) for answer in answers)
        return mined, pending

    async def gas_price(self) -> int:
        """The node's estimate of the current price per unit of gas, in wei."""
        answer = await self.rpc.call("eth_gasPrice")
        with making_sense("a price of gas"):
            return int(answer, 16)

    async def has_code(self, addresses: list[str]) -> list[bool]:
        """Whether a contract exists at each of `addresses`."""
        codes = await self.rpc.batch([("eth_getCode", [address, "latest"]) for address in addresses])
        with making_sense("code"):
            return [len(code) > 2 for code in codes]

    async def close(self) -> None:
        await self.rpc.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def read_chain_id(rpc: Rpc) -> int:
    """Id of the chain that the node is on."""
    answer = await rpc.call("eth_chainId")
    with making_sense("the chain's id"):
        return int(answer, 16)
