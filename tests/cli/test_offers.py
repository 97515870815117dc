"""`dps offers`, `dps submit --plan`, and the wishes of `dps submit`, on a real chain."""

from __future__ import annotations

import json
import re

import pytest

from deepgrid.chain.client import Chain
from deepgrid.lifecycle.job import Prefer, Wishes
from tests.cli.live import CREDIT, Dps, Party

JOB = "resources: {tasks: 1, cpusPerTask: 2, memPerCpu: 500, gpus: 0}\nsteps: []\n"
COLUMNS = "cluster fits credits/min minutes start speed reliability why not"


@pytest.fixture(autouse=True)
def job_file(dps: Dps) -> None:
    (dps.home / "job.yaml").write_text(JOB)


async def test_offers_are_a_table_with_a_row_per_cluster(dps: Dps, provider: Party) -> None:
    shown = await dps.run("offers", "job.yaml", "--credits", "90", "--provider", provider.address)
    assert (shown.status, shown.err) == (0, "")
    head, row = shown.out.splitlines()
    assert head.split() == COLUMNS.split()
    assert re.fullmatch(r"alpha +yes +2 +45 +now +- +\d\d%", row)
    narrow = await dps.run("offers", "job.yaml", "--provider", "alpha", "--uses", "os=windows", "--max-price", "5")
    assert {line.split()[1] for line in narrow.out.splitlines()[1:]} == {"no"}
    assert "has os=linux, not os==windows" in narrow.out


async def test_offers_as_json_are_exact(dps: Dps, provider: Party) -> None:
    shown = await dps.run("offers", "job.yaml", "--json", "--provider", provider.address)
    (row,) = json.loads(shown.out)
    assert (row["address"], row["fits"], row["obstacle"]) == (provider.address, True, "")
    assert (row["wei_per_minute"], row["minutes"]) == (str(2 * CREDIT), None)


async def test_a_plan_submits_nothing(dps: Dps, chain: Chain, provider: Party) -> None:
    before = await chain.job_count()
    shown = await dps.run("submit", "job.yaml", "--credits", "90", "--plan", "--provider", provider.address)
    assert (shown.status, len(shown.out.splitlines())) == (0, 2)
    refused = await dps.run("submit", "job.yaml", "--credits", "100", "--provider", "alpha")
    assert (refused.status, "--provider only narrows --plan" in refused.err) == (2, True)
    assert await chain.job_count() == before


async def test_wishes_of_a_submission_are_on_chain(dps: Dps, chain: Chain, provider: Party) -> None:
    submitted = await dps.run(
        "submit", "job.yaml", "--credits", "100", "--min-time", "10m", "--max-price", "3.5", "--give-up-after", "1d",
        "--prefer", "start",
    )  # fmt: skip
    assert submitted.status == 0, submitted.err
    job = await chain.job(int(submitted.out.split()[1]))
    end = job.wishes.give_up_at
    assert job.wishes == Wishes(35 * CREDIT // 10, 10, end, Prefer.START)
    assert 0 <= end - 86400 <= job.submitted_at
    shown = (await dps.run("job", "get", str(job.id))).out
    assert re.search(r"wishes +at most 3\.5 credits per minute, at least 10 minutes, start first, given up if", shown)
    wrong = await dps.run("submit", "job.yaml", "--credits", "100", "--prefer", "luck")
    assert (wrong.status, "'luck' is no preference" in wrong.err) == (2, True)
