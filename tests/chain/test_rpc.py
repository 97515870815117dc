"""Requests to a node: one per batch, no secret in messages, and a cancelled caller harms no other."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from deepgrid.chain.node.contract import interface
from deepgrid.chain.node.node import Rpc
from deepgrid.chain.node.node_errors import NodeRefused
from deepgrid.errors import ChainError
from tests.chain.grid import Grid
from tests.chain.odd_node import odd_node


@pytest.fixture
async def rpc(grid: Grid) -> AsyncIterator[Rpc]:
    rpc = Rpc(grid.anvil.url)
    yield rpc
    await rpc.close()


async def test_cancelled_requests_do_not_hold_up_later_ones(rpc: Rpc) -> None:
    """web3's own provider hangs forever after some hundred cancelled requests (its issue 3867)."""
    for _ in range(500):
        asking = [asyncio.create_task(rpc.call("eth_chainId")) for _ in range(random.randint(1, 4))]
        for _ in range(random.randint(0, 6)):
            await asyncio.sleep(0)
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
    async with asyncio.timeout(30):
        assert await rpc.w3.eth.chain_id == 31337


async def test_large_batches_come_back_whole_and_in_order(rpc: Rpc) -> None:
    numbers = await rpc.batch([("eth_getBlockByNumber", [hex(number), False]) for number in [0, 1, 2**40] * 80])
    assert [None if raw is None else int(raw["number"], 16) for raw in numbers] == [0, 1, None] * 80
    assert await rpc.batch([]) == []


async def test_responses_are_matched_to_requests_by_id() -> None:
    def backwards(body: bytes) -> str:
        return json.dumps(
            [{"jsonrpc": "2.0", "id": one["id"], "result": one["method"]} for one in json.loads(body)][::-1]
        )

    async with odd_node(backwards) as url:
        rpc = Rpc(url)
        assert await rpc.batch([("first", []), ("second", [])]) == ["first", "second"]
        await rpc.close()


async def test_refusal_in_a_batch_names_its_method_and_keeps_its_data() -> None:
    def second_refused(body: bytes) -> str:
        first, second = json.loads(body)
        error = {"code": 3, "message": "execution reverted", "data": "0x4e487b710077"}
        return json.dumps([{"id": first["id"], "result": 1}, {"id": second["id"], "error": error}])

    async with odd_node(second_refused) as url:
        rpc = Rpc(url)
        with pytest.raises(NodeRefused, match="refused second") as refused:
            await rpc.batch([("first", []), ("second", [])])
        assert refused.value.data == bytes.fromhex("4e487b710077")
        await rpc.close()


@pytest.mark.parametrize("error", ["no", ["no"], 5, {"code": -32603, "message": "Internal error"}])
async def test_errors_of_the_node_itself_are_transient(error: object) -> None:
    async with odd_node(lambda _: json.dumps({"jsonrpc": "2.0", "id": None, "error": error})) as url:
        rpc = Rpc(url)
        with pytest.raises(ChainError) as failed:
            await rpc.call("eth_chainId")
        assert failed.value.transient
        await rpc.close()


async def test_node_that_does_not_answer_in_time() -> None:
    hung_up = asyncio.Event()

    async def listen_only(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        hung_up.set()

    async with await asyncio.start_server(listen_only, "127.0.0.1", 0) as server:
        rpc = Rpc(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", timeout_s=0.2)
        with pytest.raises(ChainError, match="in time") as late:
            await rpc.w3.eth.chain_id
        assert late.value.transient
        await rpc.close()
        await hung_up.wait()


async def test_access_key_in_the_url_is_in_no_message(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        async with odd_node(lambda _: "<html>", 502) as url:
            rpc = Rpc(f"{url.replace('//', '//user:secret-word@')}/v3/secret-path")
            with pytest.raises(ChainError) as failed:
                await rpc.call("eth_chainId")
            await rpc.close()
    assert "502" in str(failed.value)
    assert failed.value.__suppress_context__ or failed.value.__context__ is None
    assert "secret" not in str(failed.value) + rpc.host + caplog.text


async def test_local_nodes_are_reached_without_a_proxy(monkeypatch: pytest.MonkeyPatch, grid: Grid) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    rpc = Rpc(grid.anvil.url)
    assert int(await rpc.call("eth_chainId"), 16) == 31337
    await rpc.close()


def test_a_log_of_another_contract_with_the_same_topic() -> None:
    contract = interface("MetaScheduler")
    log = {"topics": [contract.topic("JobTransitionEvent")], "data": "0x" + "ff" * 96}
    where = {"blockNumber": "0x1", "blockHash": "0x", "transactionHash": "0x", "logIndex": "0x0"}
    with pytest.raises(ChainError, match="does not come from this grid"):
        contract.event({**log, **where, "transactionIndex": "0x0", "address": "0x" + "00" * 20})


def test_web3_is_imported_only_when_a_node_is_used() -> None:
    asking = "import sys, deepgrid.chain.client, deepgrid.chain.writer; print('web3' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", asking], capture_output=True, check=True, text=True).stdout == "False\n"
    )
