"""Commands for one customer never take the places of other customers' commands."""

from __future__ import annotations

import asyncio

from deepgrid.slurm.flood import explain
from deepgrid.slurm.submit.throttle import PER_ACCOUNT, RESERVED_CHANNELS, ConcurrencyLimits


async def running(limits: ConcurrencyLimits, comments: list[str]) -> list[str]:
    """Return which of these commands run when none ends."""
    run: list[str] = []

    async def hold(comment: str) -> None:
        async with limits.slot(comment):
            run.append(comment)
            await asyncio.Event().wait()

    tasks = [asyncio.create_task(hold(comment)) for comment in comments]
    last: list[str] | None = None
    while last != run:  # each round of the loop may let one more begin
        last = list(run)
        for _ in comments:
            await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return run


async def test_an_account_runs_few_commands_under_any_of_its_names() -> None:
    limits = ConcurrencyLimits(channels=8)
    limits.learn({"a": "alice", "b": "alice", "x": "bob"})  # by submissions
    limits.learn({"a": "1001", "c": "1001"})  # by a snapshot
    run = await running(limits, ["a", "c", "b", "c", "a", "b", "x", "x"])
    assert len([one for one in run if one != "x"]) == PER_ACCOUNT
    assert run.count("x") == 8 - RESERVED_CHANNELS - PER_ACCOUNT


async def test_channels_stay_free_for_polls() -> None:
    limits = ConcurrencyLimits(channels=8, per_account=8)
    limits.learn({"a": "shared"})
    assert len(await running(limits, ["a"] * 10 + ["unknown"])) == 8 - RESERVED_CHANNELS


async def test_a_slot_is_given_back() -> None:
    limits = ConcurrencyLimits(channels=8)
    limits.learn({"a": "alice"})
    for _ in range(2):
        assert len(await running(limits, ["a"] * 20)) == PER_ACCOUNT


def test_the_reason_names_who_holds_many_connections() -> None:
    assert explain(["from 10.0.0.1 900"]) == ""  # it accepts none, as Slurm itself says
    assert explain(["accepts", "from 10.0.0.1 63"]) == ""
    assert explain(["accepts"], timed_out=True) == " slurmctld accepts connections, but does not answer."
    assert explain(["accepts", "from 10.0.0.1 900", "account alice 64", "other x 99", "account bob many"]) == (
        " slurmctld accepts connections, but may be flooded by 900 connections from 10.0.0.1,"
        " 64 connections of the account alice."
    )
