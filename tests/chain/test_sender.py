"""Transactions of one key: in order, once, and with a reason when refused, whatever the node does."""

from __future__ import annotations

import asyncio
import fcntl
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from deepgrid.chain import sender as sender_module
from deepgrid.chain.abi import interface
from deepgrid.chain.node import Node
from deepgrid.chain.sender import Sender
from deepgrid.chain.transaction import Call, Fees, Outgoing, Receipt
from deepgrid.chain.wallet import Wallet
from deepgrid.errors import ChainError, ContractError
from deepgrid.lifecycle.job import JobDefinition
from tests.chain.anvil import Anvil
from tests.chain.grid import CREDIT, DEFINITION, Grid, People, until

GWEI = 10**9


def in_pool(anvil: Anvil, address: str) -> list[int]:
    """Nonces of an account's transactions that the node holds, executable or not."""
    pools = anvil.call("txpool_content").values()
    return sorted(int(n) for pool in pools for owner in pool if owner.lower() == address.lower() for n in pool[owner])


class Bare:
    """A chain without contracts that mines when told, a key with money, and its sender."""

    def __init__(self, anvil: Anvil, node: Node, folder: Path) -> None:
        self.anvil = anvil
        self.node = node
        self.wallet = Wallet.create(folder / "keys" / "key")
        anvil.fund(self.wallet.address)
        self.sender = Sender(node, self.wallet)

    def send(self, sender: Sender | None = None, timeout_s: float = 60) -> asyncio.Task[Receipt]:
        """Start sending a transaction that does nothing."""
        call = Call("nothing", self.wallet.address, "0x")
        return asyncio.create_task((sender or self.sender).send(call, gas=21_000, timeout_s=timeout_s))

    def send_raw(self, nonce: int, tip: int = GWEI) -> str:
        """Send with this key behind the sender's back; returns the hash."""
        outgoing = Outgoing(Call("foreign", self.wallet.address, "0x"), 21_000, None)
        outgoing.sign(self.wallet.account, self.node.chain_id, nonce, Fees.for_base(4000 * GWEI, tip))
        return str(self.anvil.call("eth_sendRawTransaction", outgoing.raw))

    def in_pool(self) -> list[int]:
        """Nonces of the key's transactions that the node holds, executable or not."""
        return in_pool(self.anvil, self.wallet.address)

    def fee_in_pool(self) -> int:
        """The most that the key's waiting transactions pay, wei per gas; 0 when none waits."""
        pool = self.anvil.call("txpool_content")["pending"]
        mine = [pool[owner] for owner in pool if owner.lower() == self.wallet.address.lower()]
        return max((int(tx["maxFeePerGas"], 16) for by_nonce in mine for tx in by_nonce.values()), default=0)

    def mined(self) -> int:
        return int(self.anvil.call("eth_getTransactionCount", self.wallet.address, "latest"), 16)

    async def mine_until_done(self, *tasks: asyncio.Task[Receipt]) -> list[Receipt]:
        def done() -> bool:
            self.anvil.mine()
            return all(task.done() for task in tasks)

        await until(done)
        return [task.result() for task in tasks]


@pytest.fixture(scope="module")
def idle_anvil(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Anvil]:
    anvil = Anvil(tmp_path_factory.mktemp("idle"), idle=True)
    anvil.start()
    try:
        yield anvil
    finally:
        anvil.stop()


@pytest.fixture
async def bare(idle_anvil: Anvil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bare]:
    monkeypatch.setattr(sender_module, "STALL_S", 0.3)
    monkeypatch.setattr(sender_module, "LOST_S", 0.5)
    async with await Node.at(idle_anvil.url) as node:
        found = Bare(idle_anvil, node, tmp_path)
        yield found
        await found.sender.close()


async def _nonces(grid: Grid, receipts: list[Receipt]) -> list[int]:
    raws = [grid.anvil.call("eth_getTransactionByHash", receipt.tx_hash) for receipt in receipts]
    return [int(raw["nonce"], 16) for raw in raws]


async def _fifty_transfers(grid: Grid, people: People) -> None:
    customer, to = people.customer, people.provider.address
    receipts = await asyncio.gather(*(customer.transfer(to, number) for number in range(1, 51)))
    nonces = await _nonces(grid, receipts)
    assert nonces == list(range(nonces[0], nonces[0] + 50))
    assert await people.chain.balance(to) == sum(range(1, 51))
    amounts = [int(receipt.logs[0]["data"], 16) for receipt in receipts]
    assert amounts == list(range(1, 51))


async def test_fifty_at_once_land_in_order_when_each_is_mined_at_once(grid: Grid, people: People) -> None:
    await _fifty_transfers(grid, people)


async def test_fifty_at_once_land_in_order_in_timed_blocks(own_grid: Grid, own_people: People) -> None:
    await _fifty_transfers(own_grid, own_people)


async def test_refused_ones_leave_no_gap(people: People) -> None:
    customer, to = people.customer, people.provider.address
    amounts = [1, 10**30, 2, 10**30, 3]
    results = await asyncio.gather(*(customer.transfer(to, amount) for amount in amounts), return_exceptions=True)
    assert [isinstance(result, ContractError) for result in results] == [False, True, False, True, False]
    assert await people.chain.balance(to) == 6


async def test_mined_refusal_has_its_reason_and_knows_what_came_before_it(own_people: People) -> None:
    """Approve and request share a block: the refusal must be the deposit's, not the allowance's before the block."""
    empty = JobDefinition(gpus=0, mem_per_cpu_mb=0, cpus_per_task=0, ntasks=0, batch_location_hash="")
    with pytest.raises(ContractError) as refused:
        await own_people.customer.request_job(empty, 100 * CREDIT, "", approve_first=100 * CREDIT)
    assert refused.value.name == "InvalidJobDefinition"
    with pytest.raises(ContractError) as refused:
        await own_people.customer.request_job(DEFINITION, 20_000 * CREDIT, "", approve_first=20_000 * CREDIT)
    assert refused.value.name == "ERC20InsufficientBalance"
    assert refused.value.args_by_name["needed"] == 20_000 * CREDIT


async def test_approve_and_request_share_a_block(own_grid: Grid, own_people: People) -> None:
    job_id = await own_people.request()
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
    assert not refused.value.transient
    assert poor.address in refused.value.next_step
    # The refused one took no number: with money the next goes through.
    bare.anvil.fund(poor.address)
    await bare.mine_until_done(asyncio.create_task(poor.send(Call("nothing", poor.address, "0x"), gas=21_000)))


async def test_waiting_is_bounded_and_says_that_it_may_still_land(bare: Bare) -> None:
    with pytest.raises(ChainError, match="may still be") as late:
        await bare.send(timeout_s=0.3)
    assert late.value.transient
    assert bare.in_pool() == [0]
    await bare.mine_until_done(bare.send())
    assert bare.mined() == 2


async def test_cancelled_before_it_was_sent_is_never_sent(bare: Bare) -> None:
    first, dropped = bare.send(), bare.send()
    await asyncio.sleep(0)
    dropped.cancel()
    await bare.mine_until_done(first)
    assert bare.mined() == 1


async def test_base_fee_that_rises_is_followed(bare: Bare) -> None:
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


async def test_key_used_behind_the_senders_back(bare: Bare) -> None:
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


async def test_chain_that_goes_back_gets_everything_again(bare: Bare) -> None:
    (first,) = await bare.mine_until_done(bare.send())
    second = bare.send()
    await until(lambda: bare.in_pool() == [1])
    head = int(bare.anvil.call("eth_blockNumber"), 16)
    bare.anvil.call("anvil_rollback", head - first.block + 1)
    await bare.mine_until_done(second)
    assert bare.mined() == 2
    assert bare.anvil.call("eth_getTransactionReceipt", first.tx_hash)["status"] == "0x1"


async def test_number_voided_by_a_reorganisation_is_given_again(bare: Bare) -> None:
    """A sender that lingered after its last receipt gave out the number after one that was void, and hung."""
    (first,) = await bare.mine_until_done(bare.send())
    head = int(bare.anvil.call("eth_blockNumber"), 16)
    bare.anvil.call("anvil_rollback", head - first.block + 1)
    second = bare.send()
    await until(lambda: bool(bare.in_pool()))
    assert bare.in_pool() == [0]
    await bare.mine_until_done(second)
    assert bare.mined() == 1


async def test_node_that_dies_and_comes_back(own_grid: Grid, own_people: People) -> None:
    """Killed with transactions in its pool: all of them land, once."""
    customer, to = own_people.customer, own_people.provider.address
    before = await own_people.chain.balance(to)
    own_grid.anvil.restart()  # puts all that was prepared on disk: a kill takes what is younger than a second
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
async def test_closing_tells_those_who_wait(bare: Bare, steps: int) -> None:
    tasks = [bare.send() for _ in range(3)]
    for _ in range(steps):  # stop it in the midst of whatever it does by then
        await asyncio.sleep(0)
    await bare.sender.close()
    for task in tasks:
        with pytest.raises(ChainError, match="stopped"):
            await task


async def test_senders_of_one_key_take_turns(bare: Bare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender_module, "HOLD_S", 0.3)
    other = Sender(bare.node, Wallet.load(bare.wallet.key_file or ""))
    tasks = [bare.send(sender) for _ in range(5) for sender in (bare.sender, other)]
    await bare.mine_until_done(*tasks)
    assert bare.mined() == 10


async def test_busy_sender_lets_others_in(bare: Bare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender_module, "HOLD_S", 0.2)
    busy, other = bare.sender, Sender(bare.node, Wallet.load(bare.wallet.key_file or ""))
    one = bare.send(other)
    flood: list[asyncio.Task[Receipt]] = []

    def keep_busy() -> bool:
        flood.append(bare.send(busy))
        bare.anvil.mine()
        return one.done()

    await until(keep_busy)
    assert (await one).gas_used == 21_000
    await bare.mine_until_done(*flood)
    assert bare.mined() == len(flood) + 1


async def test_waiting_for_the_key_is_bounded(bare: Bare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender_module, "LEASE_WAIT_S", 0.2)
    assert bare.wallet.lease_file is not None
    with bare.wallet.lease_file.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(ChainError, match="Another process") as refused:
            await bare.send()
        assert refused.value.transient
    await bare.mine_until_done(bare.send())


OTHER_PROCESS = """
import asyncio, sys
from deepgrid.chain.node import Node
from deepgrid.chain.sender import Sender
from deepgrid.chain.transaction import Call
from deepgrid.chain.wallet import Wallet

async def main():
    async with await Node.at(sys.argv[1]) as node:
        sender = Sender(node, Wallet.load(sys.argv[2]))
        call = Call("nothing", sender.address, "0x")
        await asyncio.gather(*(sender.send(call, gas=21000) for _ in range(10)))

asyncio.run(main())
"""


async def test_two_processes_share_a_key(grid: Grid) -> None:
    wallet = grid.new_key("shared")
    async with await Node.at(grid.anvil.url) as node:
        sender = Sender(node, wallet)
        argv = [sys.executable, "-c", OTHER_PROCESS, grid.anvil.url, str(wallet.key_file)]
        other = subprocess.Popen(argv)
        sent = 0
        while other.poll() is None:
            await sender.send(Call("nothing", wallet.address, "0x"), gas=21_000)
            sent += 1
        assert other.returncode == 0
        assert int(grid.anvil.call("eth_getTransactionCount", wallet.address, "latest"), 16) == sent + 10


async def test_claims_race_for_one_job(people: People) -> None:
    """Two claims at once, one job: one gets it, the other learns that there is none."""
    job_id = await people.assigned()
    claims = await asyncio.gather(people.provider.claim_next(), people.provider.claim_next())
    assert [claim.job_id for claim in claims if claim is not None] == [job_id]
