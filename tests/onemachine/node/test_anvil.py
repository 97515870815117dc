"""The grid's chain keeps its history, even when it is killed at the worst moment."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from deployments.onemachine.daemons.ports import PortBook
from deployments.onemachine.daemons.processes import ProcessTable
from deployments.onemachine.node.anvil import CHAIN_ID, Anvil

SOMEBODY = "0x00000000000000000000000000000000000000aa"


@pytest.fixture
def anvil(tmp_path: Path) -> Anvil:
    return Anvil(tmp_path / "anvil", PortBook(tmp_path / "ports.json").port("node-filter"))


def start(anvil: Anvil, table: ProcessTable) -> str:
    note = anvil.prepare()
    table.start(anvil.daemon())
    table.wait_ready(anvil.daemon())
    return note


def give(anvil: Anvil, wei: int) -> None:
    asyncio.run(call(anvil, "anvil_setBalance", SOMEBODY, hex(wei)))


def balance(anvil: Anvil) -> int:
    return int(asyncio.run(call(anvil, "eth_getBalance", SOMEBODY, "latest")), 16)


async def call(anvil: Anvil, method: str, *params: str) -> str:
    node = anvil.private()
    try:
        assert int(await node.call("eth_chainId"), 16) == CHAIN_ID
        return str(await node.call(method, *params))
    finally:
        await node.close()


def test_it_keeps_its_state_over_a_restart(anvil: Anvil, table: ProcessTable) -> None:
    start(anvil, table)
    give(anvil, 5)
    table.stop("anvil")
    assert start(anvil, table) == ""
    assert balance(anvil) == 5


def test_a_state_file_cut_off_by_a_crash_is_replaced_by_the_kept_one(anvil: Anvil, table: ProcessTable) -> None:
    start(anvil, table)
    give(anvil, 5)
    table.stop("anvil")
    anvil.keep()
    state = anvil.folder / "state.json"
    state.write_bytes(state.read_bytes()[:-20])
    assert "goes back" in start(anvil, table)
    assert balance(anvil) == 5


def test_without_a_backup_the_chain_starts_from_zero(anvil: Anvil, table: ProcessTable) -> None:
    anvil.folder.mkdir()
    (anvil.folder / "state.json").write_text('{"block"')
    note = start(anvil, table)
    assert "starts from zero" in note
    assert "DEEPGRID_STATE=FOLDER ./run up" in note  # the services would give new jobs the receipts of old ones
    assert balance(anvil) == 0


def test_half_a_state_is_never_kept(anvil: Anvil, table: ProcessTable) -> None:
    start(anvil, table)
    give(anvil, 5)
    table.stop("anvil")
    anvil.keep()
    (anvil.folder / "state.json").write_text('{"block"')
    anvil.keep()
    start(anvil, table)
    assert balance(anvil) == 5
