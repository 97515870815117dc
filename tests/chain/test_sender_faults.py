"""Faults of nodes, fee markets and other programs: each transaction is mined once, or its caller gets an error."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from typing import Any

import pytest

from deepgrid.chain.transactions.in_flight import DEFAULTS
from deepgrid.chain.transactions.transaction import Receipt
from deepgrid.errors import ChainError
from tests.chain.bare import GWEI, IMPATIENT, Bare, in_pool
from tests.chain.grid import Grid, People
from tests.waiting import until

MANY = 200


def _in_pool(bare: Bare) -> list[dict[str, Any]]:
    """Return the key's transactions that can be mined, by nonce."""
    pool = bare.anvil.call("txpool_content")["pending"]
    mine: dict[str, Any] = next((pool[owner] for owner in pool if owner.lower() == bare.wallet.address.lower()), {})
    return [mine[nonce] for nonce in sorted(mine, key=int)]


def _mine_without_them(bare: Bare, blocks: int) -> None:
    """Mine blocks without the key's transactions, which stay in the pool."""
    raws = [bare.anvil.call("eth_getRawTransactionByHash", one["hash"]) for one in _in_pool(bare)]
    for one in _in_pool(bare):
        bare.anvil.call("anvil_dropTransaction", one["hash"])
    bare.anvil.mine(blocks)
    for raw in raws:
        bare.anvil.call("eth_sendRawTransaction", raw)


async def test_transactions_passed_over_by_miners_offer_more(bare: Bare) -> None:
    """The offer covers the base fee, but the tip is too small for the miners. After some blocks all are replaced."""
    tasks = [bare.send() for _ in range(3)]
    await until(lambda: bare.in_pool() == [0, 1, 2])
    before = [int(one["maxPriorityFeePerGas"], 16) for one in _in_pool(bare)]
    _mine_without_them(bare, DEFAULTS.patience_blocks)
    await until(lambda: all(int(one["maxPriorityFeePerGas"], 16) > 1.1 * before[0] for one in _in_pool(bare)))
    receipts = await bare.mine_until_done(*tasks)
    assert bare.mined() == 3
    assert len({receipt.tx_hash for receipt in receipts}) == 3


@pytest.mark.long
async def test_the_fee_of_a_transaction_has_a_limit(bare: Bare) -> None:
    """Each poll finds the transaction passed over and raises its fee, up to a multiple of the usual fee."""
    task = bare.send(bare.new_sender(replace(IMPATIENT, patience_blocks=0, stall_s=0.0)))
    await until(lambda: bare.in_pool() == [0])
    first = bare.fee_in_pool()
    await until(lambda: bare.fee_in_pool() > DEFAULTS.highest_fee_multiple / 2 * first)
    looks = [bare.fee_in_pool()]

    def unchanged() -> bool:
        looks.append(bare.fee_in_pool())
        return len(looks) > 40 and len(set(looks[-40:])) == 1

    await until(unchanged)
    assert looks[-1] <= 2 * DEFAULTS.highest_fee_multiple * first
    await bare.mine_until_done(task)


async def test_the_original_is_mined_after_its_replacement_was_sent(bare: Bare) -> None:
    """Only our node has the replacement. A miner that does not know it takes the original."""
    task = bare.send()
    await until(lambda: bare.in_pool() == [0])
    original = _in_pool(bare)[0]["hash"]
    raw = bare.anvil.call("eth_getRawTransactionByHash", original)
    _mine_without_them(bare, DEFAULTS.patience_blocks)
    await until(lambda: [one["hash"] for one in _in_pool(bare)] not in ([], [original]))
    bare.anvil.call("anvil_dropTransaction", _in_pool(bare)[0]["hash"])
    bare.anvil.call("eth_sendRawTransaction", raw)
    bare.anvil.mine()
    assert (await task).tx_hash == original
    await bare.mine_until_done(bare.send())
    assert bare.mined() == 2


@pytest.mark.long
async def test_cheap_transaction_of_a_dead_process_does_not_block_forever(bare: Bare) -> None:
    """It is in the pool, unknown to this sender, and miners pass it over. An empty transfer takes its nonce."""
    stuck = bare.send_raw(0, tip=2 * GWEI, base=GWEI)
    task = bare.send()
    await until(lambda: bare.in_pool() == [0, 1])
    await until(lambda: _in_pool(bare)[0]["hash"] != stuck)
    await bare.mine_until_done(task)
    assert bare.mined() == 2


async def test_transaction_refused_on_repeat_fails_and_blocks_no_other(bare: Bare) -> None:
    """The node lost it and the key has no money left. Its caller gets the error at once, and the next one passes."""
    first = bare.send()
    await until(lambda: bare.in_pool() == [0])
    bare.anvil.call("anvil_setBalance", bare.wallet.address, "0x0")
    bare.anvil.call("anvil_dropTransaction", _in_pool(bare)[0]["hash"])
    with pytest.raises(ChainError, match="cannot pay for gas"):
        await first
    bare.anvil.fund(bare.wallet.address)
    await bare.mine_until_done(bare.send())
    assert bare.mined() == 1


@pytest.mark.long
async def test_a_node_that_loses_its_pool_gets_all_transactions_again_in_order(bare: Bare) -> None:
    tasks = [bare.send() for _ in range(MANY)]
    await until(lambda: len(bare.in_pool()) == MANY)
    bare.anvil.call("anvil_dropAllTransactions")
    assert bare.in_pool() == []
    await bare.mine_until_done(*tasks)
    assert bare.mined() == MANY


async def test_a_reorganisation_drops_blocks_with_many_transactions(own_grid: Grid, own_people: People) -> None:
    """Two hundred transfers over several blocks; meanwhile the chain goes back by 8 blocks, twice."""
    customer, to = own_people.customer, own_people.provider.address
    first = int(own_grid.anvil.call("eth_getTransactionCount", customer.address, "latest"), 16)

    def mined() -> int:
        return int(own_grid.anvil.call("eth_getTransactionCount", customer.address, "latest"), 16) - first

    own_grid.anvil.mine(20)  # earlier blocks stay

    async def go_back_in_the_midst(tasks: list[asyncio.Task[Receipt]]) -> None:
        await until(lambda: any(task.done() for task in tasks))
        own_grid.anvil.call("anvil_reorg", 8, [])

    tasks: list[asyncio.Task[Receipt]] = []
    for _ in range(2):
        more = [asyncio.create_task(customer.transfer(to, number)) for number in range(1, MANY // 2 + 1)]
        await go_back_in_the_midst(more)
        tasks += more
    await asyncio.gather(*tasks)
    await until(lambda: mined() == MANY)  # also those that were dropped after their receipt
    own_grid.anvil.mine(1)  # at each block the node removes mined transactions from its pool
    await until(lambda: in_pool(own_grid.anvil, customer.address) == [])
    assert await own_people.chain.balance(to) == 2 * sum(range(1, MANY // 2 + 1))
    await customer.sender.close()


@pytest.mark.parametrize("seed", range(2))
async def test_callers_that_give_up_at_any_time_leave_no_nonce_gap(bare: Bare, seed: int) -> None:
    chance = random.Random(seed)
    tasks = [bare.send() for _ in range(60)]
    given_up = chance.sample(tasks, 30)
    for task in given_up:
        for _ in range(chance.randrange(60)):
            await asyncio.sleep(0)
        task.cancel()
    left = [task for task in tasks if task not in given_up]
    await bare.mine_until_done(*left)
    await bare.mine_until_done(bare.send())
    numbers = {int(bare.anvil.call("eth_getTransactionByHash", task.result().tx_hash)["nonce"], 16) for task in left}
    assert len(numbers) == len(left)
    assert bare.in_pool() == []
    assert len(left) + 1 <= bare.mined() <= len(tasks) + 1


async def test_a_fee_below_a_suddenly_higher_base_fee_is_raised(bare: Bare) -> None:
    bare.anvil.call("anvil_setNextBlockBaseFeePerGas", hex(1000 * GWEI))
    task = bare.send()
    await until(lambda: task.done() or bool(bare.sender._flight._in_flight))
    await bare.mine_until_done(task)
    assert bare.mined() == 1
