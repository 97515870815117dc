"""The relay before other nodes: without batches, busy, and pools with members that lag behind."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.gateway.odd_node import NUMBER, odd_node
from tests.gateway.relay_support import BOOK, QUICK, moved, running

CALLS = [("eth_call", [{"to": BOOK.credit, "data": f"0x{size:08x}"}, "latest"]) for size in range(1, 21)]
RESULTS = ["0x" + "00" * size for size in range(1, 21)]
LOGS = {"address": BOOK.credit, "fromBlock": "0x1", "toBlock": "latest"}
SLOW_HEAD = replace(QUICK, gather_s=0.05, head_every_s=600)


@pytest.mark.parametrize("reply", ["no batches: 400", "no batches: error"])
async def test_a_node_without_batches_serves_pages(tmp_path: Path, reply: str) -> None:
    """The relay once sent lists only, so pages always said that such a node does not answer."""
    async with odd_node() as node, running(moved(BOOK, node.url), tmp_path, SLOW_HEAD) as web:
        node.reply = reply
        assert (await web.rpc("eth_blockNumber"))["result"] == hex(NUMBER)
        assert [one["result"] for one in await web.batch(*CALLS)] == RESULTS
        logs, *others = await web.batch(("eth_getLogs", [LOGS]), ("eth_gasPrice", []))
        assert logs["result"]
        assert "result" in others[0]
        before = web.app.relay.upstream.batches
        await web.batch(*(("eth_getBalance", [f"0x{n:040x}", "latest"]) for n in range(20)))
        assert web.app.relay.upstream.batches == before + 20, "the node is known to take no batches"


@pytest.mark.parametrize("reply", ["status 429", "busy"])
async def test_pages_wait_for_a_busy_node(tmp_path: Path, reply: str) -> None:
    async with odd_node() as node, running(moved(BOOK, node.url), tmp_path, SLOW_HEAD) as web:
        if reply == "busy":
            await web.rpc("eth_blockNumber")
        node.reply = reply
        assert (await web.rpc("eth_call", *CALLS[0][1]))["result"] == RESULTS[0]


async def test_pages_keep_the_newest_block_while_the_node_is_busy(tmp_path: Path) -> None:
    limits = replace(QUICK, head_wait_s=0.05, busy_within_s=600)
    async with odd_node() as node, running(moved(BOOK, node.url), tmp_path, limits) as web:
        assert (await web.rpc("eth_blockNumber"))["result"] == hex(NUMBER)
        node.reply, node.head = "status 429", NUMBER + 1
        async with asyncio.timeout(60):
            while (found := await web.rpc("eth_blockNumber"))["result"] != hex(NUMBER + 1):
                assert found["result"] == hex(NUMBER)
                await asyncio.sleep(0.02)


async def test_events_are_not_taken_from_a_node_that_lags_behind(tmp_path: Path) -> None:
    """A member of a pool without the newest block has no events of it, and does not say so. That once stayed."""
    async with odd_node() as node, running(moved(BOOK, node.url), tmp_path, SLOW_HEAD) as web:
        await web.rpc("eth_blockNumber")
        node.is_behind = True
        behind = await web.batch(("eth_getLogs", [LOGS]), *CALLS)
        assert "error" in behind[0]
        assert [one["result"] for one in behind[1:]] == RESULTS
        node.is_behind = False
        assert (await web.rpc("eth_getLogs", LOGS))["result"]
