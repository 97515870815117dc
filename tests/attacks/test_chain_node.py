"""A job's account, or any account on this machine, against the node of the one-machine grid's chain."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from deepgrid.chain.node.node import Node
from deployments.onemachine.node.node_filter import ALLOWED, LARGEST_BATCH, LONGEST_BODY
from tests.attacks.local_account import Attacker, attacker_beside_a_grid
from tests.attacks.node_target import CHEATS, RICH, THIEF, VICTIM, Target, call, started


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    yield from started(tmp_path_factory.mktemp("node"))


@pytest.mark.attack(
    "calls test methods of the node that give money, act for others, set the clock back or set fees",
    attacker="any account on the grid's machine",
    gain="an error: method not available",
    defence="a filter allows listed methods only; the node itself listens on a private socket",
)
@pytest.mark.parametrize("request_", CHEATS, ids=lambda request: request["method"])
def test_test_methods_of_the_node_are_refused(target: Target, request_: dict[str, object]) -> None:
    before = target.private("eth_getBlockByNumber", "latest", False)
    answer = target.ask(request_)
    assert answer["error"]["code"] == -32601 and answer["id"] == 1, answer
    assert target.balance(THIEF) == 0 and target.balance(VICTIM) == RICH
    after = target.private("eth_getBlockByNumber", "latest", False)
    assert 0 <= int(after["number"], 16) - int(before["number"], 16) < 100
    assert int(after["timestamp"], 16) - int(before["timestamp"], 16) < 1000


@pytest.mark.attack(
    "hides such a method in a batch, in unusual letters, in duplicate keys, or behind an allowed request",
    attacker="any account on the grid's machine",
    gain="an error for that request; the others are answered",
    defence="requests are parsed and written again, with one id, one method and its params",
)
def test_hidden_test_methods_are_refused(target: Target) -> None:
    cheat = call("anvil_setBalance", THIEF, hex(RICH), number=2)
    answers = {one["id"]: one for one in target.ask([call("eth_chainId"), cheat, call("eth_blockNumber", number=3)])}
    assert "result" in answers[1] and "result" in answers[3] and answers[2]["error"]["code"] == -32601
    assert [one["error"]["code"] for one in target.ask([cheat])] == [-32601]
    nested = target.ask([[cheat], {"method": [cheat]}, None, 1, "x"])
    assert all("error" in one for one in nested)
    rest = json.dumps(cheat)[1:]
    for body in (
        '{"method": "eth_chainId", ' + rest,
        json.dumps(cheat)[:-1] + ', "method": "eth_getBalance"}',
        json.dumps(call("eth_chainId")) + json.dumps(cheat),
        json.dumps(call("eth_chainId")) + "\n" + json.dumps(cheat),
        json.dumps({**cheat, "method": "ANVIL_setBalance"}),
        json.dumps({**cheat, "method": " anvil_setBalance"}),
        json.dumps({**cheat, "method": "eth_chainId\n" + json.dumps(cheat)}),
        json.dumps(cheat).replace("anvil_setBalance", "\\u0061nvil_setBalance"),
        json.dumps({**cheat, "method": "eth_chainId\0anvil_setBalance"}),
    ):
        target.post(body)
        assert target.balance(THIEF) == 0, body


@pytest.mark.attack(
    "sends params whose text would end their request and begin another",
    attacker="any account on the grid's machine",
    gain="answers to its own request only",
    defence="the filter writes its own JSON; tested with 1,000 random texts of brackets, quotes and escapes",
)
def test_params_cannot_hold_a_second_request(target: Target) -> None:
    rng = random.Random(14)
    cheat = json.dumps(call("anvil_setBalance", THIEF, hex(RICH)))
    pieces = [
        '"',
        "\\",
        "\\\\",
        '\\"',
        "{",
        "}",
        "[",
        "]",
        "\n",
        "\r",
        "\0",
        "\u2028",
        "\ud800",
        "é",
        " ",
        cheat,
        f"}}\n{cheat}\n",
    ]

    async def attack() -> None:
        async with httpx.AsyncClient(base_url=target.anvil.rpc_url, trust_env=False, timeout=60) as client:
            for number in range(250):
                texts = ["".join(rng.choices(pieces, k=rng.randint(1, 12))) for _ in range(4)]
                asked = [call("web3_sha3", text, number=4 * number + place) for place, text in enumerate(texts)]
                answers = (await client.post("/", content=json.dumps(asked))).json()
                ids = {one["id"] for one in (answers if isinstance(answers, list) else [answers])}
                assert ids <= {None, *(one["id"] for one in asked)}
                honest = (await client.post("/", content=json.dumps(call("eth_chainId", number=-1)))).json()
                assert honest["id"] == -1 and "result" in honest

    asyncio.run(attack())
    assert target.balance(THIEF) == 0


@pytest.mark.attack(
    "sends malformed requests: too long, too deep, too many, odd numbers, no JSON, other HTTP methods",
    attacker="any account on the grid's machine",
    gain="an error; the next request is answered",
    defence=f"at most {LONGEST_BODY} bytes and {LARGEST_BATCH} requests per batch, checked before any is forwarded",
)
@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 500_000, b"1e999", b"NaN", b" " * (LONGEST_BODY + 1),
        b'{"id": 1, "method": "eth_call", "params": [1e999]}', b'{"id": 1, "method": "eth_call", "params": [NaN]}',
        b'{"id": 1, "method": "eth_call", "params": ' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"id": 1' + b"0" * 5000 + b', "method": "eth_chainId"}', b'{"id": true, "method": "eth_chainId"}',
        b'{"id": null, "method": "eth_chainId"}', b'{"method": "eth_chainId"}', b'{"id": 1, "method": null}',
        b'{"id": 1, "method": "eth_call", "params": "x"}', json.dumps([call("eth_chainId")] * 1001).encode(),
    ],
)  # fmt: skip
def test_malformed_requests_get_an_error_and_stop_nothing(target: Target, body: bytes) -> None:
    answer = target.post(body)
    assert answer.status_code in (200, 413)
    assert answer.status_code == 413 or "error" in answer.json(), answer.text[:200]
    assert "result" in target.ask(call("eth_chainId"))


@pytest.mark.attack(
    "uses GET, PUT, a websocket where none is served, or other paths",
    attacker="any account on the grid's machine",
    gain="HTTP 404 or 405",
    defence="the filter accepts POST on one path, and websockets on another",
)
@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", "/", {}), ("PUT", "/", {}), ("DELETE", "/", {}), ("OPTIONS", "/", {}), ("POST", "/anvil", {}),
        ("POST", "/ws", {}),
        ("GET", "/", {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "eA==",
                      "Sec-WebSocket-Version": "13"}),
    ],
)  # fmt: skip
def test_only_post_on_one_path_is_served(target: Target, method: str, path: str, headers: dict[str, str]) -> None:
    body = json.dumps(call("anvil_setBalance", THIEF, hex(RICH)))
    # A new connection: one that requested a websocket serves no other request.
    answer = httpx.request(method, f"{target.anvil.rpc_url}{path}", content=body, headers=headers, trust_env=False)
    assert answer.status_code in (404, 405)
    assert target.balance(THIEF) == 0


@pytest.mark.attack(
    "looks for the node's own port, to bypass the filter",
    attacker="any account on the grid's machine",
    gain="no connection",
    defence="the node's TCP port is on an address to which Linux allows no connection",
)
def test_the_port_of_the_node_cannot_be_reached(target: Target) -> None:
    listeners = tcp_listeners(target.table.pid("anvil") or 0)
    assert listeners, "anvil requires a TCP port; if it no longer does, remove this defence"
    for address, port in listeners:
        for host in (address, "127.0.0.1", "127.0.0.2", "0.0.0.0", socket.gethostbyname(socket.gethostname())):
            with socket.socket() as peer:
                peer.settimeout(2)
                with pytest.raises(OSError, match="unreachable|refused|timed out|not permitted"):
                    peer.connect((host, port))


def tcp_listeners(pid: int) -> list[tuple[str, int]]:
    """Return the addresses that a process listens on."""
    inodes = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        if found := re.fullmatch(r"socket:\[(\d+)\]", os.readlink(entry)):
            inodes.add(found[1])
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    mine = [row[1].split(":") for row in rows if row[3] == "0A" and row[9] in inodes]
    return [(socket.inet_ntoa(bytes.fromhex(address)[::-1]), int(port, 16)) for address, port in mine]


def test_the_filter_passes_what_the_grid_needs(target: Target) -> None:
    """The list allows every method that the project's client sends, and the node answers it."""
    sent = set()
    for source in (Path(__file__).parents[2] / "deepgrid" / "chain").glob("*.py"):
        sent |= set(re.findall(r'"(eth_[A-Za-z]+)"', source.read_text()))
    assert sent and sent <= ALLOWED

    async def read() -> int:
        async with await Node.at(target.anvil.rpc_url) as node:
            head = await node.head()
            blocks = await node.blocks(list(range(head.number + 1)))
            assert blocks[head.number] == head
            return await node.gas_money(VICTIM)

    assert asyncio.run(read()) == RICH


def test_a_stopped_node_is_reported_and_found_again(target: Target) -> None:
    target.table.stop("anvil")
    assert target.post(json.dumps(call("eth_chainId"))).status_code == 502
    target.anvil.prepare()
    target.table.start(target.anvil.daemon())
    target.table.wait_ready(target.anvil.daemon())
    assert target.balance(VICTIM) == RICH


CONNECT = """
import socket, sys
peer = socket.socket(socket.AF_UNIX); peer.settimeout(5); peer.connect(sys.argv[1])
peer.sendall(b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}\\n'); print(peer.recv(999))
"""


@pytest.fixture
def beside(request: pytest.FixtureRequest) -> Iterator[tuple[Attacker, Target]]:
    with attacker_beside_a_grid() as (attacker, state):
        for target in started(state):
            yield attacker, target


@pytest.mark.attack(
    "connects to the node's private socket, or reads the keys in its folder",
    attacker="a job's account on the grid's machine",
    gain="permission denied",
    defence="the socket is in a folder of mode 0700",
)
def test_the_private_socket_cannot_be_reached(beside: tuple[Attacker, Target]) -> None:
    attacker, target = beside
    pid = target.table.pid("anvil")
    for path in (target.anvil.socket, f"/proc/{pid}/cwd/{target.anvil.socket.name}"):
        done = attacker.run(["/usr/bin/python3", "-c", CONNECT, str(path)])
        assert done.stdout == "" and "PermissionError" in done.stderr, done
    assert not attacker.can_read(target.anvil.folder / "state.json")
    answer = attacker.request(target.anvil.rpc_url, "POST", call("anvil_setBalance", THIEF, hex(RICH)))
    assert "not available" in answer.text and target.balance(THIEF) == 0
