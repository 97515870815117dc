"""Mines the one-machine chain from outside its node, and ever fewer blocks while nothing happens.

anvil keeps the states of all blocks that its own timer mines, so its memory would grow by megabytes per minute. It
keeps the newest states only when blocks are asked for, one `evm_mine` each. See docs/decisions/0098.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import time
from dataclasses import dataclass
from pathlib import Path

from deepgrid.errors import ChainError
from deployments.onemachine.node.node_socket import NodeSocket

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pace:
    """The pace of mining.

    Each `block_s` seconds while transactions come. Without any, the gap between blocks is the idle time divided by
    `thinning`, at most `longest_s`. A pending transaction is mined at the next tick.
    """

    block_s: float = 1.0
    thinning: float = 20.0
    longest_s: float = 60.0

    def gap_s(self, idle_s: float) -> float:
        """Return seconds between the newest block and the next one, when the last transaction came `idle_s` ago."""
        return min(idle_s / self.thinning, self.longest_s)


class Miner:
    """Mines the node's blocks at a pace."""

    def __init__(self, node: NodeSocket, pace: Pace = Pace()) -> None:
        self._node = node
        self._pace = pace
        self._busy_at = self._mined_at = time.monotonic()
        self._away = False

    async def run(self) -> None:
        """Mine forever, through outages of the node."""
        due = time.monotonic()
        while True:
            try:
                await self._tick(time.monotonic())
                self._away = False
            except (ChainError, TimeoutError) as error:
                self._note_outage(error)
            due = max(due + self._pace.block_s, time.monotonic())
            await asyncio.sleep(due - time.monotonic())

    async def _tick(self, now: float) -> None:
        waiting = await self._node.call("txpool_status")
        if int(waiting["pending"], 16):
            self._busy_at = now
        if now - self._mined_at >= self._pace.gap_s(now - self._busy_at):
            await self._node.call("evm_mine")
            self._mined_at = now

    def _note_outage(self, error: Exception) -> None:
        if not self._away:
            logger.warning("cannot mine, trying again each second: %s", error or type(error).__name__)
        self._away = True
        self._busy_at = time.monotonic()  # a node that comes back may have transactions to mine


def main() -> None:
    """Command line of the miner's process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--socket", type=Path, required=True, help="unix socket of the node")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    asyncio.run(Miner(NodeSocket(parser.parse_args().socket)).run())


if __name__ == "__main__":
    main()
