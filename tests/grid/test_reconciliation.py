"""The books of one day on the whole grid name a wrong bill with its evidence. All other bills agree to the wei."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from deepgrid.billing.period import format_time
from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from flows.reconcile_billing import reconcile_billing
from flows.report_usage import report_usage
from orchestration.grid_events import BOOKS_DIFFER
from tests.grid.books import all_cold, artifact, bill_too_much, submit_many, supervised_by_nobody
from tests.grid.customer import DPS, PATIENCE_S, Customer
from tests.grid.runs import Json, run_now, unscheduled

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

JOBS = 4
BOOKS = ("reconcile_billing/alpha", "reconcile_billing/beta", "reconcile_billing/grid")


@pytest.mark.usefixtures("prefect_api")
async def test_a_wrong_bill_is_named_and_a_clean_day_balances(customer: Customer) -> None:
    grid = customer.grid
    async with unscheduled(grid, *BOOKS), await Chain.connect(AddressBook.load(grid.book)) as chain:
        since = format_time(await chain.now())
        async with supervised_by_nobody(grid, "beta"):
            (wrong_id,) = await submit_many(customer, 1, cluster="beta")
            ids = await submit_many(customer, JOBS)
            wrong = await bill_too_much(customer, wrong_id)
        await all_cold(chain, ids)

        alpha = await reconcile_billing(cluster="alpha", since=since, return_state=True)
        everybody = await reconcile_billing(operator="grid", since=since, return_state=True)
        assert alpha.is_completed(), alpha
        assert everybody.is_completed(), everybody
        assert "balance to the wei" in (alpha.message or "")
        await the_file_has_every_wei(chain, grid.state / "supervisor-alpha", ids)
        await the_file_has_every_wei(chain, grid.state / "operator", [*ids, wrong.id])

        beta = await run_now(grid, "reconcile_billing/beta", cluster="beta", since=since, tolerance_minutes=0)
        assert (beta["state"]["type"], beta["state"]["name"]) == ("FAILED", BOOKS_DIFFER)
        assert f"job {wrong.id} (minutes)" in beta["state"]["message"]
        page = await artifact(grid, "reconciliation-beta")
        settled = await chain.settlement(wrong.id)
        assert settled is not None
        for evidence in ("billed 2 minutes as finished", "ran 1 in Slurm", "COMPLETED, Slurm job", settled.tx_hash):
            assert evidence in page["data"]
        assert f'"job": {wrong.id}' in (await artifact(grid, "reconciliation-beta-jobs"))["data"]
        await the_usage_has_the_same_sums(customer, since, [*ids, wrong.id])


async def the_file_has_every_wei(chain: Chain, state: Path, ids: list[int]) -> None:
    """Check that the run's Parquet file has these jobs with the amounts that the contract settled."""
    file = max((state / "books").glob("*.parquet"), key=lambda file: file.stat().st_mtime)
    rows = pd.read_parquet(file).set_index("job_id")
    for job_id in ids:
        settled = await chain.settlement(job_id)
        assert settled is not None
        row = rows.loc[job_id]
        assert (row["outcome"], row["difference"]) == ("settled", "")
        assert int(row["paid_wei"]) == int(row["paid_out_wei"]) == settled.paid_wei
        assert int(row["refunded_wei"]) == int(row["refund_out_wei"]) == settled.refunded_wei
        assert int(row["cut_wei"]) == settled.cut_wei
        assert int(row["locked_wei"]) == settled.paid_wei + settled.cut_wei + settled.refunded_wei


async def the_usage_has_the_same_sums(customer: Customer, since: str, ids: list[int]) -> None:
    """Check report, files and command of the usage since then: every settlement is in them, to the wei."""
    grid = customer.grid
    done = await report_usage(operator="grid", since=since, return_state=True)
    assert done.is_completed(), done
    (file,) = (grid.state / "operator" / "usage").glob("*.parquet")
    rows = pd.read_parquet(file)
    settled = [await customer.settlement(job_id) for job_id in ids]
    assert set(ids) <= set(rows["job_id"])
    earned = rows.set_index("job_id")["earned_wei"].map(int)
    assert [earned[one.job_id] for one in settled] == [one.paid_wei for one in settled]
    page = await artifact(grid, "usage-grid")
    assert page["description"] == done.message
    assert "| alpha | " in page["data"] and "| beta | " in page["data"]

    for group, name, cluster in (("operator", "grid", None), ("provider", "alpha", "alpha")):
        shown = await asyncio.to_thread(usage, customer, group, name, since)
        clusters = [one for one in shown["period"]["clusters"] if one["name"]]
        assert {one["name"] for one in clusters} == ({"alpha", "beta"} if cluster is None else {cluster})
        for one in clusters:
            mine = rows[rows["cluster"] == one["name"]]
            assert int(one["earned_wei"]) == sum(map(int, mine["earned_wei"]))
            assert one["offered_seconds"]["cpus"] > one["used_seconds"]["cpus"] > 0
    assert shown["assumed_offers"] == []


def usage(customer: Customer, group: str, name: str, since: str) -> Json:
    """Return the figures of `dps operator usage` or `dps provider usage` since then."""
    environment = {**os.environ, **customer.grid.prefect.environment(), "HOME": str(customer.home)}
    command = [str(DPS), group, "usage", name, "--from", since, "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))
