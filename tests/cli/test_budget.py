"""`dps budget`: kept by the client, and checked before `dps` and the Python client lock credits."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from deepgrid import AsyncGrid
from deepgrid.chain.client import Chain
from deepgrid.client.spending.budgets import Budget
from deepgrid.errors import InputError
from deepgrid.lifecycle.states import JobStatus
from tests.cli.live import CREDIT, EXAMPLE, Dps, Live, Party

NOVEMBER_28 = 1_795_867_200  # a Saturday, 12:00 UTC


async def test_a_budget_refuses_what_exceeds_it(
    dps: Dps, live: Live, chain: Chain, running_id: int, provider: Party, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = await dps.run("budget", "set", "250", "--per", "month")
    assert said.status == 0
    assert "is 250 credits per month" in said.out
    assert "The allowance (`dps allowance set`) binds everybody." in said.out
    jobs = len(await chain.jobs_by_customer((await chain.job(running_id)).customer))
    refused = await dps.run("submit", EXAMPLE, "--credits", "151")
    assert refused.status == 2, refused
    assert "The budget is 250 credits per month: 100 are spent or locked since" in refused.err
    assert "Lock at most 150, or change it with `dps budget set`." in refused.err
    top_up = await dps.run("job", "topup", str(running_id), "151", "--force")
    assert (top_up.status, "151 more do not fit" in top_up.err) == (2, True)
    monkeypatch.setenv("HOME", str(dps.home))
    async with AsyncGrid(dps.key, live.book) as grid:
        with pytest.raises(InputError, match="100 are spent or locked"):
            await grid.submit(EXAMPLE, credits=151)
        with pytest.raises(InputError, match="do not fit"):
            await (await grid.job(running_id)).top_up(151)
    assert len(await chain.jobs_by_customer((await chain.job(running_id)).customer)) == jobs, "nothing was sent"
    await provider.writer.settle(running_id, JobStatus.FINISHED, 1)
    cost = (await chain.job(running_id)).final_cost_wei
    found = json.loads((await dps.run("budget", "get", "--json")).out)
    assert (found["spent_wei"], found["held_wei"]) == (str(cost), "0")
    assert found["left_wei"] == str(250 * CREDIT - cost)
    assert (await dps.run("submit", EXAMPLE, "--credits", "151", "--affinities", "gpu:in:nvidia")).status == 0
    assert (await dps.run("budget", "remove")).out == "You have no budget now.\n"
    assert (await dps.run("budget", "get")).out == "You have no budget.\n"
    assert (await dps.run("submit", EXAMPLE, "--credits", "500", "--affinities", "gpu:in:nvidia")).status == 0


async def test_a_damaged_file_locks_nothing(dps: Dps, tmp_path: Path) -> None:
    folder = tmp_path / ".dps"
    folder.mkdir(exist_ok=True)
    (folder / "budgets.json").write_text('{"1": {"wei": -5}}')
    refused = await dps.run("submit", EXAMPLE, "--credits", "100")
    assert (refused.status, "does not hold budgets, so nothing is locked" in refused.err) == (2, True)
    wrong = await dps.run("budget", "set", "5", "--per", "year")
    assert (wrong.status, "is no period of a budget" in wrong.err) == (2, True)


def test_periods_begin_at_midnight_in_utc() -> None:
    begins = {per: Budget(wei="1", per=per).began(NOVEMBER_28) for per in ("day", "week", "month")}
    day = 86400
    midnight = NOVEMBER_28 // day * day
    assert begins == {"day": midnight, "week": midnight - 5 * day, "month": midnight - 27 * day}


async def test_two_programs_at_once_do_not_exceed_it_together(
    dps: Dps, live: Live, provider: Party, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await dps.run("budget", "set", "150", "--per", "month")).status == 0
    monkeypatch.setenv("HOME", str(dps.home))
    async with AsyncGrid(dps.key, live.book) as one, AsyncGrid(dps.key, live.book) as other:
        both = [grid.submit(EXAMPLE, credits=100) for grid in (one, other)]
        ends = await asyncio.gather(*both, return_exceptions=True)
        assert await one.jobs().count() == 1
    (refused,) = [end for end in ends if isinstance(end, BaseException)]
    assert "more do not fit" in str(refused)
