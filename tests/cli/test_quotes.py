"""Prices that `dps validate` shows, and warnings of `dps submit`, on a real chain."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from deepgrid.chain.client import Chain
from deepgrid.lifecycle.job import JobDefinition, Label, Prices
from deepgrid.scheduling.explain import quote
from tests.chain.grid import approve_waiting
from tests.cli.live import CREDIT, HARDWARE, LABELS, PRICES, Dps, Live, Party, party

RESOURCES = "resources: {tasks: %d, cpusPerTask: 2, memPerCpu: 500, gpus: 0}\n"


async def test_the_price_and_how_long_a_deposit_lasts_are_shown(
    dps: Dps, live: Live, chain: Chain, operator: Party, provider: Party
) -> None:
    dear = party(chain, live.grid.new_key("dear"))
    labels = (Label("name", "dear"), *LABELS[1:])
    await dear.writer.register(HARDWARE, replace(PRICES, cpu_wei_per_minute=4 * CREDIT), labels)
    await approve_waiting(operator.writer, dear.address)
    try:
        (dps.home / "job.yaml").write_text(RESOURCES % 1 + "inputMode: 511\nsteps: []\n")
        (dps.home / "large.yaml").write_text(RESOURCES % 100 + "steps: []\n")
        shown = await dps.run("validate", "job.yaml", "--credits", "90")
        assert shown.status == 0
        valid, prices, hour, lasts = shown.out.splitlines()
        assert valid == "valid"
        assert "can run it: from 2 credits per minute (alpha) to 9 (dear)." in prices
        assert (hour, lasts) == ("An hour costs 120 to 540 credits.", "90 credits last 10 minutes to 45 minutes.")
        assert shown.err == "job.yaml:2:1: inputMode: warning: has no effect without input\n"
        large = await dps.run("validate", "large.yaml")
        assert large.out.splitlines()[:2] == ["valid", "No cluster of the grid can run it."]
        assert "alpha: asks for 200 CPUs, it has 8." in large.out
        submitted = await dps.run("submit", "job.yaml", "--credits", "100")
        assert "has no effect without input" in submitted.err
    finally:
        await operator.writer.remove_provider(dear.address)
        await dear.close()


async def test_a_chain_that_is_away_leaves_the_file_valid(dps: Dps, live: Live, tmp_path: Path) -> None:
    (dps.home / "job.yaml").write_text(RESOURCES % 1 + "steps: []\n")
    away = live.address_book().model_copy(update={"rpc_url": "http://127.0.0.1:1", "ws_url": None})
    book = away.save(tmp_path / "away.json")
    shown = await dps.run("validate", "job.yaml", "--book", book)
    assert (shown.status, shown.out.splitlines()[0]) == (0, "valid")
    assert shown.out.splitlines()[1].startswith("No prices are known now: ")


async def test_only_approved_clusters_that_fit_are_quoted(chain: Chain, provider: Party) -> None:
    job = JobDefinition(gpus=0, mem_per_cpu_mb=1, cpus_per_task=1, ntasks=1, definition_hash="")
    (alpha,) = [one for one in await chain.providers() if one.address == provider.address]
    free = replace(alpha, prices=Prices(gpu_wei_per_minute=0, cpu_wei_per_minute=0, mem_wei_per_mb_minute=0))
    found = quote(job, [alpha, free, replace(free, banned=True), replace(free, approved=False)])
    assert [(one.prices, rate) for one, rate in found.offers] == [
        (free.prices, 0),
        (alpha.prices, 501 * CREDIT // 1000),
    ]
    assert quote(replace(job, gpus=1), [alpha]).misfits == ((alpha, "asks for 1 GPUs, it has 0"),)
