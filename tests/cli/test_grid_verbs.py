"""`dps credit`, `dps allowance`, `dps provider`: money and clusters of a real grid."""

from __future__ import annotations

import json
from pathlib import Path

from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from tests.cli.live import CREDIT, HARDWARE, LABELS, PRICES, Dps, Live, Party, party


async def test_credits_are_shown_and_given_exactly(live: Live, dps: Dps, chain: Chain) -> None:
    assert (await dps.run("credit", "get")).out == "1000\n"
    other = live.grid.new_key(f"other-{dps.key.name}").address
    given = await dps.run("credit", "transfer", other, "0.000000000000000001")
    assert given.status == 0
    assert "0.000000000000000001 credits given" in given.out and "999.999999999999999999 are left" in given.out
    assert await chain.balance(other) == 1
    assert (await dps.run("credit", "get", other, "--wei")).out == "1\n"
    too_much = await dps.run("credit", "transfer", other, "1000")
    assert too_much.status == 2
    assert "1000 credits are needed" in too_much.err and too_much.err.count("\n") == 1


async def test_the_allowance_is_set_to_the_given_amount(dps: Dps, chain: Chain) -> None:
    assert (await dps.run("allowance", "get")).out == "0\n"
    assert (await dps.run("allowance", "set", "0.5")).status == 0
    assert (await dps.run("allowance", "get", "--wei")).out == f"{CREDIT // 2}\n"
    assert json.loads((await dps.run("allowance", "get", "--json")).out) == {
        "address": Wallet.load(dps.key).address, "allowance": "0.5", "allowance_wei": str(CREDIT // 2),
    }  # fmt: skip
    assert (await dps.run("allowance", "set", "0")).status == 0
    assert await chain.allowance(Wallet.load(dps.key).address) == 0


async def test_only_the_minter_creates_credits(live: Live, dps: Dps, chain: Chain) -> None:
    mine = Wallet.load(dps.key).address
    refused = await dps.run("credit", "mint", mine, "5")
    assert (refused.status, "lacks the role MINTER_ROLE" in refused.err) == (1, True)
    made = await dps.run("credit", "mint", mine, "5", "--key", live.grid.operator_key)
    assert made.status == 0
    assert f"5 credits created for {mine}, who has 1005 now" in made.out
    assert await chain.balance(mine) == 1005 * CREDIT


async def test_gas_money_is_shown_and_given(live: Live, dps: Dps, chain: Chain) -> None:
    assert (await dps.run("gas", "get")).out == "1000\n"
    poor = Wallet.create(live.grid.keys / f"poor-{dps.key.name}").address
    given = await dps.run("gas", "transfer", poor, "0.5")
    assert given.status == 0
    assert f"0.5 given to {poor}; 999.4999" in given.out
    assert await chain.gas_money(poor) == CREDIT // 2
    assert (await dps.run("gas", "get", poor, "--wei")).out == f"{CREDIT // 2}\n"
    shown = json.loads((await dps.run("gas", "get", poor, "--json")).out)
    assert shown == {"address": poor, "gas": "0.5", "gas_wei": str(CREDIT // 2)}
    too_much = await dps.run("gas", "transfer", poor, "1000")
    assert too_much.status == 2
    assert "the transaction itself has a cost. Give less." in too_much.err


async def test_a_provider_is_listed_and_approved(live: Live, dps: Dps, chain: Chain, tmp_path: Path) -> None:
    newcomer: Party = party(chain, live.grid.new_key(f"newcomer-{dps.key.name}"))
    await newcomer.writer.register(HARDWARE, PRICES, LABELS)
    await newcomer.close()
    listed = json.loads((await dps.run("provider", "list", "--json")).out)
    (own,) = [one for one in listed if one["address"] == newcomer.address]
    assert (own["name"], own["approved"], own["waiting_for_approval"]) == ("alpha", False, True)
    assert (own["cpus_per_node"], own["cpu_wei_per_minute"]) == ([4, 4], str(CREDIT // 2))
    shown = (await dps.run("provider", "list")).out
    assert "waiting for approval" in shown and newcomer.address in shown
    assert "0.5 per CPU, 0.001 per MB, 1 per GPU" in shown and "os=linux" in shown

    refused = await dps.run("provider", "approve", newcomer.address)
    assert (refused.status, "lacks the role METASCHEDULER_ROLE" in refused.err) == (1, True)
    approved = await dps.run("provider", "approve", newcomer.address, "--key", live.grid.operator_key)
    assert approved.status == 0
    assert (await chain.provider(newcomer.address)).approved
