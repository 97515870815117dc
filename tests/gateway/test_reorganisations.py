"""Pages after a reorganisation: what they read about blocks that were replaced is read again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from deepgrid.gateway.relay.read_rules import SETTLED_BLOCKS, Rules
from deepgrid.gateway.settings import WebLimits
from tests.gateway.odd_node import OddNode, odd_node
from tests.gateway.relay_support import BOOK, Backend, moved, running

HEAD = 200
CALL = {"to": BOOK.credit, "data": "0x00000001"}
LOGS = {"address": BOOK.credit, "fromBlock": hex(HEAD - 4), "toBlock": hex(HEAD)}


@pytest.fixture
async def node() -> AsyncIterator[OddNode]:
    async with odd_node() as found:
        found.head = HEAD
        yield found


async def replaced(web: Backend) -> Sequence[Any]:
    """Return the events to the block HEAD, the block itself, and a call at it."""
    calls: list[tuple[str, list[Any]]] = [
        ("eth_getLogs", [LOGS]),
        ("eth_getBlockByNumber", [hex(HEAD), False]),
        ("eth_call", [CALL, hex(HEAD)]),
    ]
    logs, block, call = (one["result"] for one in await web.batch(*calls))
    return logs[0]["transactionHash"][-2:], block["hash"][-2:], call


async def until_head(web: Backend, number: int) -> None:
    async with asyncio.timeout(60):
        while (await web.rpc("eth_blockNumber"))["result"] != hex(number):
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("ahead", [0, 1, 2, 5])
async def test_blocks_that_were_replaced_are_read_again(node: OddNode, tmp_path: Path, ahead: int) -> None:
    """A head that was two or more blocks ahead once hid the reorganisation, and pages kept the dead branch for good."""
    async with running(moved(BOOK, node.url), tmp_path) as web:
        assert await replaced(web) == ("ab", "ab", "0x00")
        node.fork, node.filling, node.head = "cd", "ff", HEAD + ahead
        async with asyncio.timeout(60):
            while (await web.rpc("eth_getBlockByNumber", "latest", False))["result"]["hash"][-2:] != "cd":
                await asyncio.sleep(0.02)
        assert await replaced(web) == ("cd", "cd", "0xff")


async def test_a_deep_reorganisation_is_seen_behind_a_jump_of_the_head(node: OddNode, tmp_path: Path) -> None:
    old = hex(HEAD - SETTLED_BLOCKS)
    async with running(moved(BOOK, node.url), tmp_path) as web:
        assert (await web.rpc("eth_call", CALL, old))["result"] == "0x00"
        node.head = HEAD + 3  # the same branch
        await until_head(web, HEAD + 3)
        reads = web.app.relay.upstream.reads
        assert (await web.rpc("eth_call", CALL, old))["result"] == "0x00"
        assert web.app.relay.upstream.reads - reads <= 1, "at most a head"
        node.fork, node.filling, node.head = "cd", "ff", HEAD + 9
        await until_head(web, HEAD + 9)
        assert (await web.rpc("eth_call", CALL, old))["result"] == "0xff"


@pytest.mark.parametrize(("below", "is_settled"), [(0, False), (SETTLED_BLOCKS - 1, False), (SETTLED_BLOCKS, True)])
def test_only_answers_about_blocks_well_below_the_head_hold_for_good(below: int, is_settled: bool) -> None:
    rules, block = Rules(5, frozenset([BOOK.credit]), WebLimits()), hex(HEAD - below)
    for method, params in (
        ("eth_getLogs", [LOGS | {"fromBlock": "0x1", "toBlock": block}]),
        ("eth_getBlockByNumber", [block, False]),
        ("eth_call", [CALL, block]),
        ("eth_getBalance", [BOOK.credit, block]),
    ):
        assert rules.read(method, params, HEAD).is_settled == is_settled, method
    assert not rules.read("eth_getTransactionReceipt", ["0x" + "00" * 32], HEAD).is_settled
