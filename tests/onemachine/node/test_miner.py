"""The one-machine chain's miner: a block per second during activity, few blocks on an idle chain, little memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from deployments.onemachine.daemons.ports import PortBook
from deployments.onemachine.daemons.processes import ProcessTable
from deployments.onemachine.node.anvil import Anvil
from deployments.onemachine.node.miner import Miner, Pace
from deployments.onemachine.node.node_socket import NodeSocket
from tests.waiting import until

WEEK_S = 7 * 24 * 3600.0
BOUND_MIB = 500
RICH = "0x00000000000000000000000000000000000000aa"
GIFT = {"from": RICH, "to": "0x00000000000000000000000000000000000000bb", "value": "0x1"}


@pytest.fixture
def anvil(tmp_path: Path, table: ProcessTable) -> Iterator[Anvil]:
    anvil = Anvil(tmp_path / "anvil", PortBook(tmp_path / "ports.json").port("node-filter"))
    start(anvil, table)
    yield anvil
    table.stop("anvil")


@pytest.fixture
async def node(anvil: Anvil) -> AsyncIterator[NodeSocket]:
    node = anvil.private()
    yield node
    await node.close()


def start(anvil: Anvil, table: ProcessTable) -> None:
    anvil.prepare()
    table.start(anvil.daemon())
    table.wait_ready(anvil.daemon())


@asynccontextmanager
async def mining(node: NodeSocket, pace: Pace) -> AsyncIterator[None]:
    task = asyncio.create_task(Miner(node, pace).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def height(node: NodeSocket) -> int:
    return int(await node.call("eth_blockNumber"), 16)


async def give(node: NodeSocket) -> str:
    """Send a transaction. Returns its hash."""
    await node.call("anvil_setBalance", RICH, hex(10**18))
    await node.call("anvil_impersonateAccount", RICH)
    return str(await node.call("eth_sendTransaction", GIFT))


@pytest.mark.parametrize(("idle_s", "gap_s"), [(0, 0), (20, 1), (60, 3), (600, 30), (1_200, 60), (90_000, 60)])
def test_the_gap_grows_with_the_idle_time(idle_s: float, gap_s: float) -> None:
    assert Pace().gap_s(idle_s) == gap_s


def most_idle_blocks(pace: Pace, idle_s: float) -> int:
    """Return the maximum number of blocks without a transaction: one per tick until the gap has its full length."""
    slowest_after_s = pace.longest_s * pace.thinning
    assert pace.gap_s(slowest_after_s) == pace.longest_s
    return int(slowest_after_s / pace.block_s + (idle_s - slowest_after_s) / pace.longest_s)


async def test_an_idle_chain_slows_down(node: NodeSocket) -> None:
    """Block n comes when at least 1.5 times as long has passed as at block n - 1."""
    pace = Pace(block_s=0.02, thinning=2)
    began = time.monotonic()

    async def eight() -> bool:
        return await height(node) >= 8

    async with mining(node, pace):
        await until(eight)
    assert time.monotonic() - began >= 0.02 * 1.5**7


async def test_a_transaction_on_an_idle_chain_is_mined_at_once(node: NodeSocket) -> None:
    async with mining(node, Pace(block_s=0.05, thinning=0.0001)):  # the next block without one is hours away
        sent = await give(node)

        async def mined() -> bool:
            return await node.call("eth_getTransactionReceipt", sent) is not None

        await until(mined)


async def test_a_restarted_node_is_mined_again(
    anvil: Anvil, node: NodeSocket, table: ProcessTable, caplog: pytest.LogCaptureFixture
) -> None:
    async def told() -> bool:
        return "cannot mine, trying again each second" in caplog.text

    async with mining(node, Pace(block_s=0.05)):
        await asyncio.to_thread(table.stop, "anvil")
        await until(told)
        await asyncio.to_thread(start, anvil, table)
        before = await height(node)

        async def higher() -> bool:
            return await height(node) > before

        await until(higher)
    assert caplog.text.count("cannot mine") == 1


@pytest.mark.long
async def test_an_idle_week_stays_small(anvil: Anvil, node: NodeSocket, table: ProcessTable) -> None:
    """All blocks of a week are mined at once. The node's peak memory and the size of its state file stay small."""
    pid = table.pid("anvil")
    assert pid is not None
    blocks, batch = most_idle_blocks(Pace(), WEEK_S), 100
    for _ in range(0, blocks, batch):
        await node.batch([("evm_mine", ())] * batch)
    assert await height(node) >= blocks
    status = Path(f"/proc/{pid}/status").read_text()
    peak_kib = int(status.split("VmHWM:")[1].split()[0])
    await asyncio.to_thread(table.stop, "anvil")  # it writes its state
    state = (anvil.folder / "state.json").stat().st_size
    assert peak_kib / 1024 < BOUND_MIB
    assert state / 2**20 < BOUND_MIB
