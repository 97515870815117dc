"""`dps provider`: waiting proposals, the operator's decisions, and their permissions."""

from __future__ import annotations

import json
from dataclasses import replace

from deepgrid.chain.client import Chain
from deepgrid.lifecycle.job import Label
from tests.cli.live import CREDIT, HARDWARE, LABELS, PRICES, Dps, Live, Party, party


async def newcomer(live: Live, chain: Chain, name: str) -> Party:
    return party(chain, live.grid.new_key(name))


async def test_status_shows_what_an_approval_would_change(dps: Dps, provider: Party) -> None:
    calm = await dps.run("provider", "status", provider.address)
    assert calm.status == 0
    assert f"The provider {provider.address} is approved." in calm.out and "Waits for approval" not in calm.out
    assert "os=linux" in calm.out and "started" in calm.out and "to claim" in calm.out

    await provider.writer.register(
        HARDWARE, replace(PRICES, cpu_wei_per_minute=CREDIT), (Label("name", "alpha"), Label("zone", "north"))
    )
    shown = (await dps.run("provider", "status", provider.address)).out
    assert "is approved; a change waits for approval." in shown
    assert "credits per CPU and minute  0.5 -> 1" in shown
    assert "linux -> none" in shown and "none -> north" in shown

    found = json.loads((await dps.run("provider", "status", provider.address, "--json")).out)
    assert found["standing"] == "change_waits"
    assert "credits per CPU and minute: 0.5 -> 1" in found["changes"]
    assert found["approved"]["cpu_wei_per_minute"] == str(CREDIT // 2)
    assert found["proposed"]["cpu_wei_per_minute"] == str(CREDIT)
    assert found["track_record"] == {"started": 0, "refused": 0, "panicked": 0, "timed_out": 0}
    assert found["queues"] == {"to_claim": 0, "to_cancel": 0, "topped_up": 0}


async def test_status_knows_a_cluster_by_its_name_and_oneself_by_the_key(live: Live, dps: Dps, chain: Chain) -> None:
    name = f"cluster-{dps.key.name}"
    someone = await newcomer(live, chain, f"by-name-{dps.key.name}")
    slower = Label("benchmark.degraded", "compute.gflops")
    await someone.writer.register(HARDWARE, PRICES, (slower, Label("name", name)))
    shown = await dps.run("provider", "status", name)
    assert f"The provider {someone.address} waits for approval." in shown.out
    assert "compute.gflops is more than 15 % worse than it usually is" in shown.out
    mine = await dps.run("provider", "status", "--key", live.grid.keys / f"by-name-{dps.key.name}")
    assert someone.address in mine.out
    assert "is not registered." in (await dps.run("provider", "status")).out
    unknown = await dps.run("provider", "status", "nobody's")
    assert unknown.status == 1 and "No provider calls its cluster" in unknown.err
    await someone.close()


async def test_the_operator_bans_and_removes(live: Live, dps: Dps, chain: Chain) -> None:
    someone = await newcomer(live, chain, f"decided-{dps.key.name}")
    await someone.writer.register(HARDWARE, PRICES, LABELS)
    as_operator = ("--key", live.grid.operator_key)

    async def said(verb: str) -> str:
        done = await dps.run("provider", verb, someone.address, *as_operator)
        assert done.status == 0, done.err
        assert "transaction 0x" in done.out
        return done.out

    assert f"{someone.address} is approved." in await said("approve")
    assert f"{someone.address} is banned." in await said("ban")
    assert (await chain.provider(someone.address)).banned
    assert "is banned." in (await dps.run("provider", "status", someone.address)).out
    assert "is no longer banned." in await said("unban")
    assert "is removed." in await said("remove")
    assert "is not registered." in (await dps.run("provider", "status", someone.address)).out
    await someone.close()


async def test_the_operator_approves_what_was_looked_at(live: Live, dps: Dps, chain: Chain) -> None:
    someone = await newcomer(live, chain, f"looked-at-{dps.key.name}")
    await someone.writer.register(HARDWARE, PRICES, LABELS)
    shown = json.loads((await dps.run("provider", "status", someone.address, "--json")).out)
    looked_at = shown["proposal_hash"]
    assert looked_at in (await dps.run("provider", "status", someone.address)).out
    as_operator = ("--key", live.grid.operator_key)

    await someone.writer.register(HARDWARE, replace(PRICES, cpu_wei_per_minute=1000 * CREDIT), LABELS)
    late = await dps.run("provider", "approve", someone.address, "--proposal", looked_at, *as_operator)
    assert late.status == 1 and "has replaced its proposal meanwhile" in late.err
    assert not (await chain.provider(someone.address)).approved

    await someone.writer.register(HARDWARE, PRICES, LABELS)
    done = await dps.run("provider", "approve", someone.address, "--proposal", looked_at, *as_operator)
    assert done.status == 0, done.err
    typo = await dps.run("provider", "approve", someone.address, "--proposal", looked_at[:-1], *as_operator)
    assert typo.status == 2 and "0x and 64 hexadecimal digits" in typo.err
    await someone.close()


async def test_an_approval_shows_what_it_puts_in_force(live: Live, dps: Dps, provider: Party) -> None:
    await provider.writer.register(HARDWARE, replace(PRICES, cpu_wei_per_minute=CREDIT), LABELS)
    done = await dps.run("provider", "approve", provider.address, "--key", live.grid.operator_key)
    assert done.status == 0, done.err
    assert "credits per CPU and minute  0.5 -> 1" in done.out


async def test_others_than_the_operator_decide_nothing(dps: Dps, provider: Party) -> None:
    for verb in ("approve", "remove", "ban", "unban"):
        refused = await dps.run("provider", verb, provider.address)
        assert refused.status == 1, verb
        assert "lacks the role METASCHEDULER_ROLE" in refused.err and refused.err.count("\n") == 1


async def test_a_provider_that_nobody_knows_is_said_to_be_unknown(live: Live, dps: Dps) -> None:
    nobody = live.grid.new_key(f"nobody-{dps.key.name}").address
    for verb, complaint in (
        ("approve", "No proposal of the provider waits for approval"),
        ("remove", "There is no such provider"),
        ("ban", "is not a provider of this grid"),
        ("unban", "The provider already has that status"),
    ):
        refused = await dps.run("provider", verb, nobody, "--key", live.grid.operator_key)
        assert (refused.status, complaint in refused.err) == (1, True), refused.err


async def test_registering_needs_a_prefect_server(dps: Dps) -> None:
    done = await dps.run("provider", "register", "alpha")
    assert done.status == 2
    assert "No Prefect server is configured. Set PREFECT_API_URL" in done.err
