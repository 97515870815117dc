"""Several senders of one key, in one process and in several, take turns and lose nothing."""

from __future__ import annotations

import asyncio
import fcntl
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.chain.chain_findings import judge_lease
from deepgrid.chain.node.node import Node
from deepgrid.chain.transactions.nonce_lease import NonceLease, Turns, open_lease
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.transaction import Call, Receipt
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.errors import ChainError
from deepgrid.findings import Level
from tests.chain.bare import IMPATIENT, Bare
from tests.chain.grid import Grid, People
from tests.waiting import until


async def test_senders_of_one_key_take_turns(bare: Bare) -> None:
    senders = [bare.new_sender(replace(IMPATIENT, hold_s=0.3)) for _ in range(2)]
    tasks = [bare.send(sender) for _ in range(5) for sender in senders]
    await bare.mine_until_done(*tasks)
    assert bare.mined() == 10


async def test_a_busy_sender_releases_the_key_for_others(bare: Bare) -> None:
    busy, other = (bare.new_sender(replace(IMPATIENT, hold_s=0.2)) for _ in range(2))
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


async def test_a_process_that_takes_the_lease_again_and_again_lets_others_in(tmp_path: Path) -> None:
    """It leaves no time between two turns, so others never find the lease free."""
    file, turns = tmp_path / "key.lease", Turns(hold_s=0.2, let_in_s=0.5)

    async def wait() -> None:
        async with NonceLease(file, wait_s=60):
            pass

    other: asyncio.Task[None] | None = None
    for _ in range(40):  # of 0.02 s: the other one gets its turn after ten
        await turns.let_others_in()
        async with NonceLease(file, wait_s=60):
            other = other or asyncio.create_task(wait())
            await asyncio.sleep(0.02)
        turns.released()
        if other.done():
            return
    other.cancel()
    pytest.fail("the other process starves")


async def test_waiting_for_the_key_is_bounded(bare: Bare) -> None:
    sender = bare.new_sender(replace(IMPATIENT, lease_wait_s=0.2))
    assert bare.wallet.lease_file is not None
    with bare.wallet.lease_file.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(ChainError, match="Another process") as refused:
            await bare.send(sender)
        assert refused.value.transient
    await bare.mine_until_done(bare.send(sender))


@pytest.mark.skipif(os.getuid() != 0, reason="makes files of other accounts")
def test_a_lease_that_root_makes_belongs_to_the_owner_of_the_key(tmp_path: Path) -> None:
    """A command of root with the key of a role's process must not lock that process out."""
    key = Wallet.create(tmp_path / "operator.key").key_file
    assert key is not None
    os.chown(key, 1, 1)
    lease = key.with_name("operator.key.lease")
    os.close(open_lease(lease))
    assert (lease.stat().st_uid, lease.stat().st_gid, stat.S_IMODE(lease.stat().st_mode)) == (1, 1, 0o600)
    os.close(open_lease(lease))
    assert judge_lease(lease) == []


def test_a_doctor_names_a_lease_of_another_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = tmp_path / "operator.key.lease"
    assert judge_lease(lease) == []
    lease.touch()
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert [(one.subject, one.level) for one in judge_lease(lease)] == [("key", Level.BAD)]


OTHER_PROCESS = """
import asyncio, sys
from deepgrid.chain.node.node import Node
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.transaction import Call
from deepgrid.chain.transactions.wallet import Wallet

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
    """Two claims at once for one job: one gets it, the other gets none."""
    job_id = await people.assigned()
    claims = await asyncio.gather(people.provider.claim_next(), people.provider.claim_next())
    assert [claim.job_id for claim in claims if claim is not None] == [job_id]
