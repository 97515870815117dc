"""A lagging node hides the last blocks from every request and forwards transactions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from deepgrid.chain.node.node import Node
from tests.chain.anvil import Anvil
from tests.chain.bare import Bare
from tests.chaos.lagging import LaggingNode

BEHIND = 3


@pytest.fixture
async def bare(tmp_path: Path) -> AsyncIterator[Bare]:
    """A sender at the lagging node of a chain that mines on demand."""
    anvil = Anvil(tmp_path, idle=True)
    anvil.start()
    lagging = LaggingNode(anvil.url, BEHIND)
    try:
        async with await Node.at(f"http://127.0.0.1:{lagging.port}") as node:
            bare = Bare(anvil, node, tmp_path)
            yield bare
            await bare.sender.close()
    finally:
        lagging.close()
        anvil.stop()


async def test_every_answer_lags_but_transactions_are_forwarded(bare: Bare) -> None:
    bare.anvil.mine(10)
    assert (await bare.node.head()).number == 10 - BEHIND
    mined = bare.send_raw(0)
    bare.anvil.mine()
    assert await bare.node.rpc.call("eth_getTransactionReceipt", mined) is None
    assert await bare.node.rpc.call("eth_getTransactionCount", bare.wallet.address, "latest") == "0x0"
    bare.anvil.mine(BEHIND)
    assert (await bare.node.rpc.call("eth_getTransactionReceipt", mined))["blockNumber"] == "0xb"
    assert (await bare.node.head()).number == 11


async def test_a_transaction_sent_through_it_is_mined_once(bare: Bare) -> None:
    bare.anvil.mine(10)
    await bare.mine_until_done(*(bare.send() for _ in range(5)))
    assert bare.mined() == 5
