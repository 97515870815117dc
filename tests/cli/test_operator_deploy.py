"""`dps operator deploy` on a real chain: a first run, a repeated run, and a run killed at each step."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from tests.chain.anvil import Anvil
from tests.chain.bare import in_pool
from tests.cli.live import Dps

URLS = ("--definitions-url", "http://127.0.0.1:3000", "--logs-url", "http://127.0.0.1:3000")
WITHIN_S = 60
STEPS = 6


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[Anvil]:
    """A private chain that mines on request."""
    folder = tmp_path / "anvil"
    folder.mkdir()
    anvil = Anvil(folder, idle=True)
    anvil.start()
    try:
        yield anvil
    finally:
        anvil.stop()


@pytest.fixture
def dps(idle: Anvil, forker: Path, tmp_path: Path) -> Dps:
    """The command with the key of a future admin, without an address book."""
    admin = Wallet.create(tmp_path / "keys" / "admin")
    idle.fund(admin.address)
    return Dps(tmp_path, tmp_path / "grid.json", tmp_path / "keys" / "admin", forker=forker)


def _mine_at_once(anvil: Anvil) -> None:
    anvil.call("evm_setAutomine", True)


async def test_first_run_again_and_with_another_duty(idle: Anvil, dps: Dps) -> None:
    _mine_at_once(idle)
    admin = Wallet.load(dps.key).address
    operator, approver = (Wallet.create(dps.home / "keys" / name).address for name in ("operator", "approver"))
    first = await dps.run("operator", "deploy", "--rpc-url", idle.url, *URLS, "--operator", operator)
    assert first.status == 0, first.err
    assert first.err == ""
    lines = [line.strip() for line in first.out.splitlines()]
    assert lines[0] == f"The grid's contracts, with the key of {admin}:"
    assert [line.split(" at ")[0] for line in lines[1:4]] == [
        "Credit deployed", "ProviderManager deployed", "MetaScheduler deployed",
    ]  # fmt: skip
    assert f"{operator} assigns and panics jobs from now on" in lines
    assert lines[-1] == f"6 transactions were sent. The address book of chain 31337 is {dps.book}."

    book = dps.book.read_bytes()
    again = await dps.run("operator", "deploy")
    assert again.status == 0, again.err
    assert "nothing was sent" in again.out
    assert dps.book.read_bytes() == book

    more = await dps.run("operator", "deploy", "--approve", approver, "--ws-url", "ws://127.0.0.1:9")
    assert f"{approver} approves providers from now on" in more.out
    assert "1 transaction was sent" in more.out
    found = AddressBook.load(dps.book)
    assert (found.ws_url, found.meta_scheduler) == ("ws://127.0.0.1:9", json.loads(book)["meta_scheduler"])
    async with await Chain.connect(found) as chain:
        assert await chain.has_role("METASCHEDULER_ROLE", approver, "ProviderManager")
        assert not await chain.has_role("METASCHEDULER_ROLE", approver)


@pytest.mark.long  # seven processes, which start as slowly as dps
async def test_killed_at_each_step(idle: Anvil, dps: Dps) -> None:
    """Killed while each of its transactions waits to be mined, the command still sends each once."""
    dps = replace(dps, forker=None)  # a signal must reach it at once
    admin = Wallet.load(dps.key).address
    command = ("operator", "deploy", "--rpc-url", idle.url, *URLS, "--operator", admin)
    for step in range(STEPS):
        process = await dps.start(*command)
        async with asyncio.timeout(WITHIN_S):
            while step not in in_pool(idle, admin):
                assert process.returncode is None, await process.communicate()
                await asyncio.sleep(0.02)
        process.kill()
        await process.communicate()
        assert not dps.book.exists()
        idle.mine()
        assert idle.call("eth_getTransactionCount", admin, "latest") == hex(step + 1)
    last = await dps.run(*command)
    assert last.status == 0, last.err
    assert "nothing was sent" in last.out
    assert idle.call("eth_getTransactionCount", admin, "latest") == hex(STEPS)
    async with await Chain.connect(AddressBook.load(dps.book)) as chain:
        assert await chain.has_role("METASCHEDULER_ROLE", admin)
    assert sorted(path.name for path in dps.home.glob("grid.json*")) == ["grid.json"]


async def test_what_cannot_be_deployed_says_why(idle: Anvil, dps: Dps) -> None:
    _mine_at_once(idle)
    admin = Wallet.load(dps.key).address

    async def complaint(*args: str | Path) -> str:
        outcome = await dps.run("operator", "deploy", *args)
        assert outcome.status == 2
        assert "Traceback" not in outcome.err
        return outcome.err

    poor = Wallet.create(dps.home / "keys" / "poor")
    refused = await complaint("--rpc-url", idle.url, *URLS, "--operator", admin, "--key", dps.home / "keys" / "poor")
    assert f"{poor.address} cannot pay for gas" in refused

    foreign = {
        "chain_id": 179188, "rpc_url": idle.url, "meta_scheduler": admin, "credit": admin, "provider_manager": admin,
        "definitions_url": "http://127.0.0.1:3000", "logs_url": "http://127.0.0.1:3000",
    }  # fmt: skip
    dps.book.write_text(json.dumps(foreign))
    assert "The address book is of chain 179188" in await complaint("--operator", admin)
    assert json.loads(dps.book.read_bytes()) == foreign
    assert idle.call("eth_getTransactionCount", admin, "pending") == "0x0"
