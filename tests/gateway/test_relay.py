"""The relay on a real chain: allowed and refused requests, shared reads, and the contents of each answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deepgrid.chain.node.contract import interface
from deepgrid.chain.node.values import coded_id
from deepgrid.chain.transactions.wallet import Wallet
from tests.chain.grid import CREDIT, Grid, running_grid
from tests.gateway.odd_node import odd_node
from tests.gateway.relay_support import QUICK, SECRET_PATH, Backend, moved, running

REVERTED, FAILED, LIMIT, NO_METHOD, PARAMS = 3, -32000, -32005, -32601, -32602
STRANGER = "0x" + "11" * 20
HASH = "0x" + "00" * 32


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    with running_grid(tmp_path_factory.mktemp("relay")) as found:
        yield found


@pytest.fixture
async def web(grid: Grid, tmp_path: Path) -> AsyncIterator[Backend]:
    async with running(grid.book, tmp_path) as backend:
        yield backend


async def test_a_page_reads_the_chain(web: Backend, grid: Grid) -> None:
    number = int((await web.rpc("eth_blockNumber"))["result"], 16)
    assert number > 0
    assert await web.rpc("eth_chainId") == {"jsonrpc": "2.0", "id": 7, "result": hex(grid.book.chain_id)}
    operator = Wallet.load(grid.operator_key).address
    block, jobs, credits, gas, missing, events = await web.batch(
        ("eth_getBlockByNumber", ["latest", False]),
        ("eth_call", [web.call_of("jobIdCounter"), hex(number)]),
        ("eth_call", [web.call_of("balanceOf", operator, contract="Credit"), "latest"]),
        ("eth_getBalance", [operator, hex(number)]),
        ("eth_getTransactionReceipt", [HASH]),
        ("eth_getLogs", [{"address": grid.book.credit, "fromBlock": "0x0", "toBlock": "latest"}]),
    )
    assert int(block["result"]["number"], 16) == number
    assert (int(jobs["result"], 16), int(credits["result"], 16)) == (0, 0)
    assert int(gas["result"], 16) > 0
    assert missing["result"] is None
    assert events["result"]
    assert [one["id"] for one in (block, jobs, credits, gas, missing, events)] == [0, 1, 2, 3, 4, 5]


async def test_a_revert_keeps_its_data(web: Backend) -> None:
    error = (await web.rpc("eth_call", web.call_of("getMany", [coded_id(99)]), "latest"))["error"]
    assert (error["code"], error["message"]) == (REVERTED, "execution reverted")
    assert len(error["data"]) >= 10


async def test_equal_reads_of_all_pages_reach_the_node_once(grid: Grid, tmp_path: Path) -> None:
    """1,000 pages cost the node no more than one."""
    async with running(grid.book, tmp_path, replace(QUICK, gather_s=0.05, head_every_s=60)) as web:
        head = (await web.rpc("eth_blockNumber"))["result"]
        before = web.app.relay.upstream.reads
        calls = [("eth_call", [web.call_of("jobIdCounter"), block]) for block in ("latest", head)]
        found = await asyncio.gather(*(web.batch(*calls) for _ in range(50)))
        assert {one["result"] for answers in found for one in answers} == {"0x" + "00" * 32}
        assert web.app.relay.upstream.reads == before + 1
        await web.batch(*calls)
        assert web.app.relay.upstream.reads == before + 1, "it is cached"


async def test_reads_of_the_same_moment_are_one_batch(grid: Grid, tmp_path: Path) -> None:
    async with running(grid.book, tmp_path, replace(QUICK, gather_s=0.5, head_every_s=60)) as web:
        await web.rpc("eth_blockNumber")
        before = web.app.relay.upstream.batches
        customers = [f"0x{n:040x}" for n in range(1, 41)]
        calls = [("eth_call", [web.call_of("balanceOf", one, contract="Credit"), "latest"]) for one in customers]
        found = await asyncio.gather(*(web.batch(call) for call in calls))
        assert all(int(answers[0]["result"], 16) == 0 for answers in found)
        assert web.app.relay.upstream.batches - before <= 3  # 40 without gathering


async def test_a_new_block_is_seen(web: Backend, grid: Grid) -> None:
    before = int((await web.rpc("eth_blockNumber"))["result"], 16)
    grid.anvil.mine()
    async with asyncio.timeout(30):
        while int((await web.rpc("eth_blockNumber"))["result"], 16) != before + 1:
            await asyncio.sleep(0.02)
    by_number = await web.rpc("eth_getBlockByNumber", hex(before + 1), False)
    assert int(by_number["result"]["number"], 16) == before + 1


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("eth_call", [{"to": STRANGER, "data": "0x"}, "latest"]),
        ("eth_call", [{"data": "0x"}, "latest"]),
        ("eth_call", [{"to": ["MetaScheduler"], "data": "0x"}, "latest"]),
        ("eth_call", ["MetaScheduler", "latest"]),
        ("eth_call", [{"to": "MetaScheduler", "data": "0xzz"}, "latest"]),
        ("eth_call", [{"to": "MetaScheduler", "data": "0x" + "00" * 60_000}, "latest"]),
        ("eth_call", [{"to": "MetaScheduler", "value": "0x1"}, "latest"]),
        ("eth_call", [{"to": "MetaScheduler"}, "earliest"]),
        ("eth_call", [{"to": "MetaScheduler"}, {"blockHash": HASH}]),
        ("eth_call", [{"to": "MetaScheduler"}, "0xffffff"]),
        ("eth_call", [{"to": "MetaScheduler"}, 1]),
        ("eth_call", [{"to": "MetaScheduler"}, "latest", {"MetaScheduler": {"code": "0x"}}]),
        ("eth_estimateGas", [{"to": STRANGER, "data": "0x"}]),
        ("eth_getCode", [STRANGER, "latest"]),
        ("eth_getBlockByNumber", ["latest", True]),
        ("eth_getBlockByNumber", ["0x01", False]),
        ("eth_getBlockByNumber", ["0xfffffff", False]),
        ("eth_getLogs", [{"fromBlock": "0x0"}]),
        ("eth_getLogs", [{"address": [], "fromBlock": "0x0"}]),
        ("eth_getLogs", [{"address": ["MetaScheduler", STRANGER], "fromBlock": "0x0"}]),
        ("eth_getLogs", [{"address": "MetaScheduler", "blockHash": HASH}]),
        ("eth_getLogs", [{"address": "MetaScheduler", "fromBlock": "0xffff"}]),
        ("eth_getLogs", [{"address": "MetaScheduler", "fromBlock": "0x1", "topics": ["0x1"]}]),
        ("eth_getLogs", [{"address": "MetaScheduler", "fromBlock": "0x1", "topics": [[HASH] * 101]}]),
        ("eth_getTransactionReceipt", ["0x1"]),
        ("eth_getBalance", ["0x1", "latest"]),
        ("eth_feeHistory", [5000, "latest", []]),
        ("eth_feeHistory", ["0x5", "latest", [float("inf")]]),
    ],
)
async def test_malformed_and_foreign_reads_do_not_reach_the_node(web: Backend, method: str, params: list[Any]) -> None:
    await web.rpc("eth_blockNumber")
    before = web.app.relay.upstream.reads
    assert await web.code(method, *_with_contract(params, web.book.meta_scheduler)) in (PARAMS, -32700)
    assert web.app.relay.upstream.reads - before <= 1, "at most a head"


def _with_contract(given: Any, address: str) -> Any:
    """Return the same parameters, with the contract's address in place of its name."""
    if isinstance(given, list):
        return [_with_contract(one, address) for one in given]
    if isinstance(given, dict):
        return {name: _with_contract(one, address) for name, one in given.items()}
    return "Infinity" if given == float("inf") else address if given == "MetaScheduler" else given


async def test_blocks_of_events_are_bounded(grid: Grid, tmp_path: Path) -> None:
    async with running(grid.book, tmp_path, replace(QUICK, log_blocks=3)) as web:
        head = int((await web.rpc("eth_blockNumber"))["result"], 16)
        wide = {"address": grid.book.credit, "fromBlock": hex(head - 3), "toBlock": hex(head)}
        assert await web.code("eth_getLogs", wide) == PARAMS
        assert (await web.rpc("eth_getLogs", wide | {"fromBlock": hex(head - 2)}))["result"] is not None
        old = wide | {"fromBlock": hex(head - 5), "toBlock": hex(head - 4)}
        assert (await web.rpc("eth_getLogs", old))["result"] is not None, "the range counts, not its age"


@pytest.mark.parametrize(
    "method",
    ["eth_accounts", "eth_sign", "eth_sendTransaction", "debug_traceCall", "anvil_setBalance", "eth_newFilter"],
)
async def test_other_methods_are_not_offered(web: Backend, method: str) -> None:
    assert await web.code(method) == NO_METHOD
    assert await web.code("eth_sendRawTransaction", "0x00") == NO_METHOD


async def test_a_wallet_sends_to_contracts_of_the_grid_only(grid: Grid, tmp_path: Path) -> None:
    wallet = grid.new_key("sender")
    async with running(grid.book, tmp_path, transactions=True) as web:
        count = (await web.rpc("eth_getTransactionCount", wallet.address, "pending"))["result"]

        def signed(to: str | None, chain_id: int = grid.book.chain_id, **fields: Any) -> str:
            data = interface("Credit").encode("approve", STRANGER, CREDIT)
            facts = {"nonce": int(count, 16), "gas": 100_000, "chainId": chain_id, "value": 0, "data": data}
            fees = {"maxFeePerGas": 10**10, "maxPriorityFeePerGas": 1}
            made = wallet.account.sign_transaction(facts | ({"to": to} if to else {}) | (fields or fees))
            return "0x" + made.raw_transaction.hex()

        for hostile in (signed(STRANGER), signed(None), signed(grid.book.credit, 1), "0x", "0x02", "0x03c0", "0xc0"):
            assert await web.code("eth_sendRawTransaction", hostile) == PARAMS
        legacy_elsewhere = signed(grid.book.credit, 1, gasPrice=10**10)
        assert await web.code("eth_sendRawTransaction", legacy_elsewhere) == PARAMS
        raw = signed(grid.book.credit, gasPrice=10**10)
        sent = (await web.rpc("eth_sendRawTransaction", raw))["result"]
        async with asyncio.timeout(30):
            while (receipt := (await web.rpc("eth_getTransactionReceipt", sent))["result"]) is None:
                await asyncio.sleep(0.02)
        assert receipt["status"] == "0x1"
        again = (await web.rpc("eth_sendRawTransaction", raw))["error"]
        assert again["message"] in ("nonce too low", "already known")


async def test_the_node_is_never_named(grid: Grid, tmp_path: Path) -> None:
    """A hosted node's URL holds an access key."""
    async with odd_node() as node, running(moved(grid.book, node.url + SECRET_PATH), tmp_path) as web:
        for reply in ("error with url", "not json", "status 500", "status 413", "a dict", "a number", "hang up"):
            node.reply = reply
            answers = [await web.rpc("eth_blockNumber"), await web.rpc("eth_gasPrice")]
            assert {one["error"]["code"] for one in answers} == {FAILED}, reply
            await asyncio.sleep(QUICK.head_every_s)
            text = str(answers) + (await web.http.get("/v1/grid")).text
            assert "access-key" not in text
            assert "127.0.0.1" not in text
        node.reply = "a block"
        async with asyncio.timeout(30):
            while "result" not in await web.rpc("eth_blockNumber"):
                await asyncio.sleep(0.02)


async def test_one_large_answer_does_not_fail_the_others_of_its_batch(grid: Grid, tmp_path: Path) -> None:
    limits = replace(QUICK, gather_s=0.05, answer_bytes=5000, node_answer_bytes=20_000)
    async with odd_node() as node, running(moved(grid.book, node.url), tmp_path, limits) as web:
        node.reply = "a block"
        calls = [
            ("eth_call", [{"to": grid.book.credit, "data": f"0x{size:08x}"}, "latest"]) for size in (9, 9_000, 50_000)
        ]
        small, large, huge = await web.batch(*calls)
        assert len(small["result"]) == 2 + 2 * 9
        assert large["error"]["code"] == LIMIT
        assert huge["error"]["code"] == FAILED


async def test_a_chain_that_began_anew_is_not_mixed_with_the_old_one(grid: Grid, tmp_path: Path) -> None:
    async with odd_node() as node, running(moved(grid.book, node.url), tmp_path) as web:
        node.reply = "a block"
        call = {"to": grid.book.credit, "data": "0x00000001"}
        assert (await web.rpc("eth_call", call, "0x10"))["result"] == "0x00"
        node.fork, node.filling = "cd", "ff"
        async with asyncio.timeout(30):
            while (await web.rpc("eth_call", call, "0x10"))["result"] != "0xff":
                await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 200), (b"{", 200), (b"[]", 200), (b"7", 200), (b"[" * 100_000, 200), (b"\xff\xfe", 200),
        (b'{"method": 7}', 200), (b'{"method": "eth_chainId", "params": {"a": 1}}', 200),
        (b'[' + b'{"method":"eth_chainId"},' * 100 + b'{"method":"eth_chainId"}]', 200),
        (b" " * (256 * 1024 + 1), 413),
    ],
)  # fmt: skip
async def test_hostile_bodies_get_an_error(web: Backend, body: bytes, status: int) -> None:
    answer = await web.http.post("/rpc", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == status
    assert answer.json()["error"]["message"]
    assert answer.json()["id"] is None


async def test_forms_and_other_methods_are_refused(web: Backend) -> None:
    """A page of another origin cannot use a visitor's share without a preflight, which gets no permission."""
    assert (await web.http.get("/rpc")).status_code == 405
    body = b'{"method":"eth_chainId","id":1}'
    assert (await web.http.post("/rpc", content=body, headers={"Content-Type": "text/plain"})).status_code == 415
    answer = await web.http.options("/rpc", headers={"Origin": "https://evil.example"})
    assert answer.status_code == 405
    assert not any(name.startswith("access-control") for name in answer.headers)


async def test_ids_are_returned_but_not_any(web: Backend) -> None:
    for given, told in ((5, 5), ("x\u2028<", "x\u2028<"), (None, None), ([1], None), ("x" * 200, None), (True, None)):
        assert (await web.rpc("eth_chainId", id=given))["id"] == told


async def test_many_open_pages_of_one_address_meet_no_limit(web: Backend) -> None:
    """A university's pages once got 429 from the gate of the services."""
    calls = [("eth_call", [web.call_of("jobIdCounter"), "latest"])] * 10
    for _ in range(5):
        found = await asyncio.gather(*(web.batch(*calls) for _ in range(200)))
        assert all("result" in one for answers in found for one in answers)


async def test_one_address_cannot_ask_the_node_without_end(grid: Grid, tmp_path: Path) -> None:
    from deepgrid.services.admission import Rate

    limits = replace(QUICK, reads_per_address=Rate(0.001, 5), calls_per_address=Rate(0.001, 60))
    async with running(grid.book, tmp_path, limits) as web:
        calls = [("eth_getBalance", [f"0x{n:040x}", "latest"]) for n in range(20)]
        found = await web.batch(*calls)
        assert [one.get("error", {}).get("code") for one in found] == [None] * 5 + [LIMIT] * 15
        assert "result" in (await web.batch(*calls))[0], "what is cached costs nothing"
        answer = await web.http.post("/rpc", json=[{"method": "eth_chainId"}] * 40)
        assert answer.status_code == 429
        assert int(answer.headers["Retry-After"]) > 0
