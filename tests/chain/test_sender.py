"""Transactions of one key are mined in order and once, or refused with a reason, under any fault of the node."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from deepgrid.chain.node.contract import interface
from deepgrid.chain.node.node import Node
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.transaction import Call, Receipt
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.errors import ChainError, ContractError
from deepgrid.lifecycle.job import JobDefinition
from tests.chain.anvil import Anvil
from tests.chain.bare import GWEI, Bare, in_pool
from tests.chain.grid import CREDIT, DEFINITION, Grid, People
from tests.waiting import until


async def _nonces(grid: Grid, receipts: list[Receipt]) -> list[int]:
    raws = [grid.anvil.call("eth_getTransactionByHash", receipt.tx_hash) for receipt in receipts]
    return [int(raw["nonce"], 16) for raw in raws]


async def _transfers(grid: Grid, people: People) -> None:
    customer, to = people.customer, people.provider.address
    receipts = await asyncio.gather(*(customer.transfer(to, number) for number in range(1, 201)))
    nonces = await _nonces(grid, receipts)
    assert nonces == list(range(nonces[0], nonces[0] + 200))
    assert await people.chain.balance(to) == sum(range(1, 201))
    amounts = [int(receipt.logs[0]["data"], 16) for receipt in receipts]
    assert amounts == list(range(1, 201))


async def test_two_hundred_concurrent_calls_are_mined_in_order_with_instant_mining(grid: Grid, people: People) -> None:
    await _transfers(grid, people)


async def test_two_hundred_concurrent_calls_are_mined_in_order_in_timed_blocks(
    own_grid: Grid, own_people: People
) -> None:
    await _transfers(own_grid, own_people)


async def test_refused_transactions_leave_no_nonce_gap(people: People) -> None:
    customer, to = people.customer, people.provider.address
    amounts = [1, 10**30, 2, 10**30, 3]
    results = await asyncio.gather(*(customer.transfer(to, amount) for amount in amounts), return_exceptions=True)
    assert [isinstance(result, ContractError) for result in results] == [False, True, False, True, False]
    assert await people.chain.balance(to) == 6


async def test_a_mined_revert_has_the_reason_after_earlier_transactions_of_its_block(own_people: People) -> None:
    """Approval and request share a block.

    The refusal must be about the deposit, not about the allowance before the block.
    """
    empty = JobDefinition(gpus=0, mem_per_cpu_mb=0, cpus_per_task=0, ntasks=0, definition_hash="")
    with pytest.raises(ContractError) as refused:
        await own_people.customer.request_job(empty, 100 * CREDIT, "", approve_first=100 * CREDIT)
    assert refused.value.name == "InvalidJobDefinition"
    with pytest.raises(ContractError) as refused:
        await own_people.customer.request_job(DEFINITION, 20_000 * CREDIT, "", approve_first=20_000 * CREDIT)
    assert refused.value.name == "ERC20InsufficientBalance"


async def test_approve_and_request_share_a_block(own_grid: Grid, own_people: People) -> None:
    anvil, customer = own_grid.anvil, own_people.customer
    anvil.call("evm_setIntervalMining", 0)
    requesting = asyncio.create_task(own_people.request())
    await until(lambda: len(in_pool(anvil, customer.address)) == 2)
    anvil.mine()
    job_id = await requesting
    (requested,) = await own_people.chain.history(job_id)
    block = own_grid.anvil.call("eth_getBlockByNumber", hex(requested.block), False)
    assert len(block["transactions"]) == 2


async def test_too_little_gas_is_named(people: People) -> None:
    data = interface("Credit").encode("transfer", people.provider.address, 1)
    call = Call("transfer", people.chain.book.credit, data)
    with pytest.raises(ContractError) as refused:
        await people.customer.sender.send(call, gas=25_000)
    assert refused.value.name == "OutOfGas"


async def test_no_money_for_gas(bare: Bare, tmp_path: Path) -> None:
    poor = Sender(bare.node, Wallet.create(tmp_path / "keys" / "poor"))
    with pytest.raises(ChainError, match="cannot pay for gas") as refused:
        await poor.send(Call("nothing", poor.address, "0x"), gas=21_000)
    assert refused.value.transient  # the wallet can be refilled, and no job is lost
    assert poor.address in refused.value.next_step
    # The refused one took no nonce. So the next one passes as soon as the wallet has money.
    bare.anvil.fund(poor.address)
    await bare.mine_until_done(asyncio.create_task(poor.send(Call("nothing", poor.address, "0x"), gas=21_000)))


async def test_a_receipt_timeout_reports_that_the_transaction_may_still_be_mined(bare: Bare) -> None:
    with pytest.raises(ChainError, match="may still be") as late:
        await bare.send(timeout_s=3)
    assert late.value.transient
    assert bare.in_pool() == [0]
    await bare.mine_until_done(bare.send())
    assert bare.mined() == 2


async def test_a_call_cancelled_before_sending_is_never_sent(bare: Bare) -> None:
    first, dropped = bare.send(), bare.send()
    await asyncio.sleep(0)
    dropped.cancel()
    await bare.mine_until_done(first)
    assert bare.mined() == 1


async def test_replacements_follow_a_rising_base_fee(bare: Bare) -> None:
    task = bare.send()
    await until(lambda: bare.in_pool() == [0])
    bare.anvil.call("anvil_setNextBlockBaseFeePerGas", hex(1000 * GWEI))
    bare.anvil.mine()
    assert not task.done()
    assert bare.mined() == 0
    await until(lambda: bare.fee_in_pool() > 1000 * GWEI)
    bare.anvil.mine()
    await task
    assert bare.mined() == 1


async def test_another_program_uses_the_same_key(bare: Bare) -> None:
    first = bare.send()
    await until(lambda: bare.in_pool() == [0])
    bare.send_raw(1)
    second = bare.send()
    await until(lambda: bare.in_pool() == [0, 1, 2])
    await bare.mine_until_done(first, second)
    assert bare.mined() == 3


async def test_displaced_transaction_is_reported(bare: Bare) -> None:
    task = bare.send()
    await until(lambda: bare.in_pool() == [0])
    bare.send_raw(0, tip=50 * GWEI)
    bare.anvil.mine()
    with pytest.raises(ChainError, match="displaced") as displaced:
        await task
    assert displaced.value.transient


async def test_gap_left_by_a_dead_process_is_filled(bare: Bare) -> None:
    lost = bare.send_raw(0)
    task = bare.send()
    await until(lambda: bare.in_pool() == [0, 1])
    bare.anvil.call("anvil_dropTransaction", lost)
    await bare.mine_until_done(task)
    assert bare.mined() == 2


async def test_transactions_are_sent_again_after_the_chain_goes_back(bare: Bare) -> None:
    (first,) = await bare.mine_until_done(bare.send())
    second = bare.send()
    await until(lambda: bare.in_pool() == [1])
    head = int(bare.anvil.call("eth_blockNumber"), 16)
    bare.anvil.call("anvil_rollback", head - first.block + 1)
    await bare.mine_until_done(second)
    assert bare.mined() == 2
    assert bare.anvil.call("eth_getTransactionReceipt", first.tx_hash)["status"] == "0x1"


async def test_an_idle_sender_sends_a_dropped_transaction_again(bare: Bare) -> None:
    """The caller already has the receipt when the chain goes back. The sender notices this by itself."""
    receipts = await bare.mine_until_done(*(bare.send() for _ in range(3)))
    head = int(bare.anvil.call("eth_blockNumber"), 16)
    bare.anvil.call("anvil_rollback", head - receipts[0].block + 1)
    assert bare.mined() == 0
    await until(lambda: bare.in_pool() == [0, 1, 2])
    bare.anvil.mine()
    assert bare.mined() == 3
    for receipt in receipts:
        assert bare.anvil.call("eth_getTransactionReceipt", receipt.tx_hash)["status"] == "0x1"


async def test_nonces_voided_by_a_reorganisation_are_not_reused(bare: Bare) -> None:
    """A sender once used the nonce after a dropped one and hung, or reused the dropped nonce and lost a transaction."""
    (first,) = await bare.mine_until_done(bare.send())
    head = int(bare.anvil.call("eth_blockNumber"), 16)
    bare.anvil.call("anvil_rollback", head - first.block + 1)
    second = bare.send()
    await until(lambda: bare.in_pool() == [0, 1])
    await bare.mine_until_done(second)
    assert bare.mined() == 2
    assert bare.anvil.call("eth_getTransactionReceipt", first.tx_hash)["status"] == "0x1"


async def test_another_chain_at_the_same_address_gets_no_old_transactions(bare: Bare, tmp_path: Path) -> None:
    """A development chain that began again has none of the key's transactions and must not get them."""
    bare.anvil.call("anvil_setNonce", bare.wallet.address, hex(500))
    await bare.mine_until_done(bare.send(), bare.send())
    bare.anvil.call("anvil_setNonce", bare.wallet.address, "0x0")
    task = bare.send()
    await until(lambda: bool(bare.in_pool()))
    assert bare.in_pool() == [0]
    await bare.mine_until_done(task)
    assert bare.mined() == 1


async def test_node_that_dies_and_comes_back(own_grid: Grid, own_people: People) -> None:
    """The node is killed with transactions in its pool. Each is mined once."""
    customer, to = own_people.customer, own_people.provider.address
    before = await own_people.chain.balance(to)
    own_grid.anvil.restart()  # writes the prepared state to disk: a kill loses the last second
    sends = [asyncio.create_task(customer.transfer(to, number)) for number in range(1, 11)]
    await until(lambda: bool(in_pool(own_grid.anvil, customer.address)))
    own_grid.anvil.kill()
    await asyncio.sleep(0.5)  # long enough for polls to fail
    own_grid.anvil.start()
    await asyncio.gather(*sends)
    assert await own_people.chain.balance(to) == before + sum(range(1, 11))


async def test_down_node_fails_at_once_before_anything_was_signed(bare: Bare, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    anvil = Anvil(folder)
    anvil.start()
    try:
        async with await Node.at(anvil.url) as node:
            anvil.stop()
            with pytest.raises(ChainError) as down:
                await Sender(node, bare.wallet).send(Call("nothing", bare.wallet.address, "0x"))
            assert down.value.transient
    finally:
        anvil.stop()


@pytest.mark.parametrize("steps", [1, 20, 200])
async def test_closing_the_sender_ends_waiting_calls(bare: Bare, steps: int) -> None:
    tasks = [bare.send() for _ in range(3)]
    for _ in range(steps):  # stop it at any point of its work
        await asyncio.sleep(0)
    await bare.sender.close()
    for task in tasks:
        with pytest.raises(ChainError, match="stopped"):
            await task
