"""`dps operator constants`, `withdraw`, `open`, `close` and `dps job panic` on a real chain."""

from __future__ import annotations

import json

import pytest

from deepgrid.chain.client import Chain
from deepgrid.lifecycle.states import JobStatus
from tests.cli.live import CREDIT, Dps, Live, Party


async def test_constants_are_shown_and_set_by_the_owner(live: Live, dps: Dps, chain: Chain) -> None:
    before = await chain.constants()
    owner = ("--key", live.grid.operator_key)
    assert "New jobs are accepted." in (await dps.run("operator", "constants")).out
    refused = await dps.run("operator", "constants", "claim-timeout", "7")
    assert (refused.status, "is not the contract's owner" in refused.err) == (1, True)
    try:
        changed = await dps.run("operator", "constants", "claim-timeout", "7", *owner)
        assert changed.out.startswith("claim-timeout is 7 minutes from now on.\n"), changed.err
        assert (await dps.run("operator", "constants", "minimum", "2.5", *owner)).status == 0
        shown = json.loads((await dps.run("operator", "constants", "--json")).out)
        assert (shown["claim_timeout_minutes"], shown["minimum_wei"]) == (7, str(5 * CREDIT // 2))
        assert "minimum           2.5 credits\n" in (await dps.run("operator", "constants")).out
        assert (await dps.run("operator", "constants", "report-tolerance", "21", *owner)).status == 0
        assert json.loads((await dps.run("operator", "constants", "--json")).out)["report_tolerance_minutes"] == 21
        assert "report-tolerance  21 minutes\n" in (await dps.run("operator", "constants")).out
    finally:
        await dps.run("operator", "constants", "claim-timeout", str(before.claim_timeout_minutes), *owner)
        await dps.run("operator", "constants", "minimum", str(before.minimum_wei), "--wei", *owner)
        await dps.run("operator", "constants", "report-tolerance", str(before.report_tolerance_minutes), *owner)
    assert await chain.constants() == before


async def test_a_cut_is_announced_and_not_applied_early(live: Live, dps: Dps, chain: Chain) -> None:
    percent = (await chain.cut()).percent
    announced = await dps.run("operator", "constants", "cut", str(percent), "--key", live.grid.operator_key)
    assert f"A cut of {percent} % is announced. Apply it from " in announced.out
    assert f"A cut of {percent} % is announced." in (await dps.run("operator", "constants")).out
    early = await dps.run("operator", "constants", "--apply-cut")
    assert early.status == 1
    assert "notice" in early.err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("rate", "5"), "There is no constant 'rate'. Use one of minimum, cut,"),
        (("cut",), "cut needs a value in percent."),
        (("claim-timeout", "1.5"), "'1.5' is not a number of minutes."),
        (("minimum", "many"), "many"),
    ],
)
async def test_a_constant_that_makes_no_sense_is_refused(
    dps: Dps, arguments: tuple[str, ...], complaint: str
) -> None:  # fmt: skip
    said = await dps.run("operator", "constants", *arguments)
    assert said.status == 2
    assert complaint in said.err


async def test_a_closed_grid_takes_no_jobs_until_it_is_opened(live: Live, dps: Dps, chain: Chain) -> None:
    (dps.home / "job.yaml").write_text(
        "resources: {tasks: 1, cpusPerTask: 1, memPerCpu: 1, gpus: 0}\nsteps: [{run: {command: 'true'}}]\n"
    )
    refused = await dps.run("operator", "close")
    assert (refused.status, "lacks the role" in refused.err) == (1, True)
    try:
        assert (await dps.run("operator", "close", "--key", live.grid.operator_key)).status == 0
        assert not await chain.accepts_requests()
        assert (await dps.run("submit", "job.yaml", "--credits", "100")).status == 1
    finally:
        opened = await dps.run("operator", "open", "--key", live.grid.operator_key)
    assert "The grid accepts new jobs." in opened.out
    assert (await dps.run("submit", "job.yaml", "--credits", "100")).status == 0


async def test_the_cut_is_withdrawn_by_the_admin(
    live: Live, dps: Dps, chain: Chain, running_id: int, provider: Party, operator: Party
) -> None:
    await provider.writer.settle(running_id, JobStatus.FINISHED, 1)
    kept = await chain.platform_cut()
    assert kept > 0
    assert (await dps.run("operator", "withdraw", "1", "--wei")).status == 1
    before = await chain.balance(operator.address)
    one = await dps.run("operator", "withdraw", "1", "--wei", "--key", live.grid.operator_key)
    assert "0.000000000000000001 credits withdrawn" in one.out
    rest = await dps.run("operator", "withdraw", "--key", live.grid.operator_key)
    assert "0 are left." in rest.out
    assert await chain.platform_cut() == 0
    assert await chain.balance(operator.address) == before + kept
    assert (
        await dps.run("operator", "withdraw", "--key", live.grid.operator_key)
    ).out == "There is no cut to withdraw.\n"


async def test_the_operator_ends_a_job_with_a_full_refund(live: Live, dps: Dps, chain: Chain, running_id: int) -> None:
    customers = (await chain.job(running_id)).customer
    assert (await dps.run("job", "panic", str(running_id), "power cut")).status == 1
    ended = await dps.run("job", "panic", str(running_id), "power cut", "--key", live.grid.operator_key)
    assert f"job {running_id} is panicked; " in ended.out and f"credits went to {customers}." in ended.out
    job = await chain.job(running_id)
    assert (job.status, job.last_error) == (JobStatus.PANICKED, "power cut")
    settlement = await chain.settlement(running_id)
    assert settlement is not None
    assert (settlement.refunded_wei, settlement.paid_wei) == (job.locked_wei, 0)
