"""Control of the chain's node: reorganisations, fees, gas money, mining, its process and its clock."""

from __future__ import annotations

import asyncio
import json
import math
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM
from typing import Any

from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.errors import ChainError, NotFound
from deepgrid.lifecycle.job import Job
from tests.chaos.world import World

WITHIN_S = 120.0
POLL_S = 0.2
DEPTH = 4
GWEI = 10**9
USUAL_BASE_FEE = GWEI


async def until(reached: Callable[[], Awaitable[bool]], what: str, within_s: float = WITHIN_S) -> None:
    """Wait for a condition. Tolerates outages of the node."""
    deadline = time.monotonic() + within_s
    while True:
        with suppress(ChainError, NotFound):
            if await reached():
                return
        assert time.monotonic() < deadline, f"not within {within_s:.0f} s: {what}"
        await asyncio.sleep(POLL_S)


class NodeKeeper:
    """The node of a world's chain, reached without a proxy."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rpc = world.chain.rpc
        self._private = world.grid.anvil.private()
        self._ahead_s = 0

    async def call(self, method: str, *params: Any) -> Any:
        """Call the node's private socket, which allows every method."""
        try:
            return await self._private.call(method, *params)
        finally:
            await self._private.close()

    async def height(self) -> int:
        return int(await self.call("eth_blockNumber"), 16)

    # -- mining and fees ---------------------------------------------------------------------

    async def stop_mining(self) -> None:
        os.kill(self._miner(), SIGSTOP)

    async def mine_every_second(self) -> None:
        """Mine one block per second while transactions come, the default of the grid."""
        await self.call("evm_setAutomine", False)
        os.kill(self._miner(), SIGCONT)

    async def mine_each_transaction(self) -> None:
        os.kill(self._miner(), SIGSTOP)
        await self.call("evm_setAutomine", True)

    def _miner(self) -> int:
        pid = self._world.grid.table.pid("miner")
        assert pid is not None
        return pid

    async def set_base_fee(self, wei: int) -> None:
        """Set the base fee of the next block. Later blocks continue from it."""
        await self.call("anvil_setNextBlockBaseFeePerGas", hex(wei))

    async def set_gas_money(self, address: str, wei: int) -> None:
        await self.call("anvil_setBalance", address, hex(wei))

    # -- history -----------------------------------------------------------------------------

    async def reorganise(self, depth: int = DEPTH) -> None:
        """Replace the last blocks and their transactions with empty blocks. The chain's clock is not set back."""
        ahead_s = await self.ahead_s()
        await self.call("anvil_reorg", depth, [])
        await self.call("evm_setTime", int(time.time()) + ahead_s)  # anvil sets its clock back with the blocks

    async def counts(self) -> dict[str, int]:
        """Return the number of transactions on the chain per role."""
        keys = self._world.grid.keys
        addresses = [Wallet.load(keys.file(name)).address for name in keys.names if keys.file(name).exists()]
        answers = await self._rpc.batch([("eth_getTransactionCount", [one, "latest"]) for one in addresses])
        return {address: int(answer, 16) for address, answer in zip(addresses, answers, strict=True)}

    async def regain(self, counts: dict[str, int]) -> None:
        """Wait until every role has its previous number of transactions on the chain."""

        async def regained() -> bool:
            now = await self.counts()
            return all(now[address] >= count for address, count in counts.items())

        await until(regained, "the dropped transactions are on the chain again")

    # -- process -----------------------------------------------------------------------------

    async def end(self) -> None:
        """Stop the node with a signal. It writes its state first."""
        self._ahead_s = await self.ahead_s()
        await asyncio.to_thread(self._world.grid.table.stop, "anvil", SIGTERM)

    async def cut_power(self) -> None:
        """Kill the node as a power cut would: the last seconds of the chain are lost. Waits while it writes its state
        in place, because no node can start from half a file. Loses no more blocks than a reorganisation drops.
        """
        self._ahead_s = await self.ahead_s()
        pid = self._world.grid.table.pid("anvil")
        assert pid is not None
        state = self._world.grid.anvil.folder / "state.json"
        while True:
            os.kill(pid, SIGSTOP)
            if time.time() - state.stat().st_mtime < DEPTH and await asyncio.to_thread(_is_whole, state.read_bytes):
                break
            os.kill(pid, SIGCONT)
            await asyncio.sleep(POLL_S)
        await asyncio.to_thread(self._world.grid.table.stop, "anvil", SIGKILL)

    async def start(self) -> None:
        """Start it with the state that it wrote last. The chain's clock is not set back."""
        await asyncio.to_thread(self._start)
        await self.call("evm_setTime", int(time.time()) + self._ahead_s)

    def _start(self) -> None:
        grid = self._world.grid
        assert not grid.anvil.prepare()
        daemon = grid.anvil.daemon()
        grid.table.start(daemon)
        grid.table.wait_ready(daemon)

    # -- clock -------------------------------------------------------------------------------

    async def ahead_s(self) -> int:
        """Return how far the chain's clock is ahead of this machine's, within a second."""
        await self.call("evm_mine")  # an idle chain's newest block is up to a minute old
        return math.ceil((await self._world.chain.head()).timestamp - time.time())

    async def jump(self, seconds: int) -> None:
        """Let the chain's clock jump ahead. It stays ahead, because block times never decrease."""
        await self.call("evm_increaseTime", seconds)

    # -- jobs --------------------------------------------------------------------------------

    async def until_job(self, reached: Callable[[Job], bool], since: int, what: str) -> None:
        """Wait until `reached` is true for a job requested after the first `since` ones."""

        async def found() -> bool:
            count = await self._world.chain.job_count()
            return any(reached(job) for job in await self._world.chain.jobs(list(range(since + 1, count + 1))))

        await until(found, what)


def _is_whole(read: Callable[[], bytes]) -> bool:
    try:
        json.loads(read())
    except ValueError:
        return False
    return True
