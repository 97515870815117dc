"""The chain's clock of a simulated day, and what its blocks cost: gas and bytes of call data."""

from __future__ import annotations

import asyncio
import time
import zlib
from dataclasses import dataclass

from deepgrid.chain.client import Chain

BLOCK_S = 0.5
"""Seconds between two blocks by this machine's clock."""


@dataclass
class BlockCosts:
    """The sums over all blocks of the day."""

    blocks: int = 0
    transactions: int = 0
    gas: int = 0
    call_data_bytes: int = 0
    nonzero_bytes: int = 0
    compressed_bytes: int = 0
    fullest: float = 0.0

    def add(self, block: dict[str, object]) -> None:
        """Count a block with its transactions. A rollup publishes the compressed call data of whole batches."""
        transactions = block["transactions"]
        assert isinstance(transactions, list)
        data = b"".join(bytes.fromhex(one["input"][2:]) for one in transactions)
        used, limit = int(str(block["gasUsed"]), 16), int(str(block["gasLimit"]), 16)
        self.blocks += 1
        self.transactions += len(transactions)
        self.gas += used
        self.call_data_bytes += len(data)
        self.nonzero_bytes += len(data) - data.count(0)
        self.compressed_bytes += len(zlib.compress(data, 9)) if data else 0
        self.fullest = max(self.fullest, used / limit)


class DayClock:
    """Mines a block every BLOCK_S. The chain's clock runs `speed` times as fast as this machine's."""

    def __init__(self, chain: Chain, speed: float) -> None:
        self._chain = chain
        self._speed = speed
        self.costs = BlockCosts()
        self.began = 0
        self.now = 0
        """Time of the newest block, in unix seconds."""
        self.number = 0
        self._mined = asyncio.Event()

    async def start(self) -> None:
        """Take the newest block as the start of the day."""
        head = await self._chain.head()
        self.began = self.now = head.timestamp
        self.number = head.number

    @property
    def elapsed_s(self) -> int:
        """Seconds of the day so far, by the chain's clock."""
        return self.now - self.began

    async def mine(self) -> None:
        """Mine blocks until cancelled."""
        started = time.monotonic()
        while True:
            await asyncio.sleep(BLOCK_S)
            at = self.began + int((time.monotonic() - started) * self._speed)
            await self._chain.rpc.batch([("evm_mine", [{"timestamp": max(at, self.now + 1)}])])
            (block,) = await self._chain.rpc.batch([("eth_getBlockByNumber", ["latest", True])])
            self.costs.add(block)
            self.now, self.number = int(block["timestamp"], 16), int(block["number"], 16)
            self._mined.set()
            self._mined.clear()

    async def next_block(self) -> None:
        """Wait for the next block."""
        await self._mined.wait()
