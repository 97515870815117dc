"""`dps job topup`: more time for a job of a real grid, paid as `dps submit` pays."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.lifecycle.states import JobStatus
from tests.cli.live import CREDIT, Dps, Live, Party
from tests.cli.support import Invoke

EXAMPLE = Path(__file__).parents[2] / "examples" / "hello-world.yaml"


async def claim(operator: Party, provider: Party, job_id: int) -> None:
    await operator.writer.meta_schedule(job_id, provider.address)
    assert await provider.writer.claim_next() is not None


@pytest.fixture
async def pending_id(dps: Dps) -> int:
    outcome = await dps.run("submit", EXAMPLE, "--credits", "100")
    found = re.fullmatch(r"job (\d+) submitted\n", outcome.out)
    assert found is not None, outcome
    return int(found[1])


@pytest.fixture
async def claimed_id(pending_id: int, operator: Party, provider: Party) -> int:
    """A job of 0.628 credits per minute, for 159 minutes."""
    await claim(operator, provider, pending_id)
    return pending_id


async def test_a_top_up_raises_the_limit_and_leaves_no_allowance(dps: Dps, chain: Chain, claimed_id: int) -> None:
    outcome = await dps.run("job", "topup", str(claimed_id), "50")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.startswith(f"job {claimed_id} may run for 238 minutes in all, for 150 credits.\ntransaction 0x")
    job = await chain.job(claimed_id)
    assert (job.locked_wei, job.granted_minutes) == (150 * CREDIT, 238)
    address = Wallet.load(dps.key).address
    assert (await chain.allowance(address), await chain.balance(address)) == (0, 850 * CREDIT)
    assert (await dps.run("job", "topup", str(claimed_id), str(CREDIT), "--wei")).status == 0
    assert (await chain.job(claimed_id)).locked_wei == 151 * CREDIT


async def test_an_allowance_that_stands_is_used_and_not_changed(dps: Dps, chain: Chain, claimed_id: int) -> None:
    await dps.run("allowance", "set", "70")
    assert (await dps.run("job", "topup", str(claimed_id), "30", "--no-approve")).status == 0
    assert await chain.allowance(Wallet.load(dps.key).address) == 40 * CREDIT
    short = await dps.run("job", "topup", str(claimed_id), "50", "--no-approve")
    assert (short.status, short.err) == (
        2,
        "dps: The allowance is 40 credits; 50 are needed, and this call may not change it."
        " Run `dps allowance set 50`, or omit --no-approve.\n",
    )
    assert (await dps.run("job", "topup", str(claimed_id), "50")).status == 0
    assert await chain.allowance(Wallet.load(dps.key).address) == 0


async def test_somebody_elses_job_can_be_paid_for(live: Live, dps: Dps, operator: Party, claimed_id: int) -> None:
    await operator.writer.mint(operator.address, 10 * CREDIT)
    outcome = await dps.run("job", "topup", str(claimed_id), "10", "--key", live.grid.operator_key)
    assert outcome.status == 0, outcome
    assert f"What it does not use goes to its customer {Wallet.load(dps.key).address}.\n" in outcome.out


async def test_a_job_that_no_cluster_has_is_not_topped_up(
    dps: Dps, chain: Chain, operator: Party, provider: Party, pending_id: int
) -> None:
    early = await dps.run("job", "topup", str(pending_id), "10")
    assert (early.status, early.err) == (
        1, f"dps: Job {pending_id} is pending: no cluster has claimed it."
        " Wait until a cluster has claimed it, then top it up.\n",
    )  # fmt: skip
    await claim(operator, provider, pending_id)
    await provider.writer.settle(pending_id, JobStatus.FAILED, 0)
    late = await dps.run("job", "topup", str(pending_id), "10")
    assert (late.status, late.err) == (1, f"dps: Job {pending_id} is over: it is failed.\n")
    nobody = await dps.run("job", "topup", "999999", "10")
    assert (nobody.status, nobody.err) == (1, "dps: Job 999999 does not exist.\n")
    address = Wallet.load(dps.key).address
    assert (await chain.allowance(address), await chain.balance(address)) == (0, 1000 * CREDIT)


async def test_what_one_does_not_have_is_not_locked(dps: Dps, chain: Chain, claimed_id: int) -> None:
    for amount, complaint in (("901", "has 900. Lock fewer, or get more credits."), ("0", "The amount to add is 0.")):
        outcome = await dps.run("job", "topup", str(claimed_id), amount)
        assert outcome.status == 2
        assert complaint in outcome.err and outcome.err.count("\n") == 1
    assert await chain.allowance(Wallet.load(dps.key).address) == 0


async def test_a_time_is_bought_at_the_price_of_the_job(dps: Dps, chain: Chain, claimed_id: int) -> None:
    rate_wei = (await chain.job(claimed_id)).rate_wei_per_minute
    for text, minutes in (("10", 10), ("1h30m", 90), ("30s", 1)):
        before = (await chain.job(claimed_id)).locked_wei
        assert (await dps.run("job", "topup", str(claimed_id), "--time", text)).status == 0
        assert (await chain.job(claimed_id)).locked_wei - before == minutes * rate_wei


async def test_a_time_needs_a_price(dps: Dps, pending_id: int) -> None:
    outcome = await dps.run("job", "topup", str(pending_id), "--time", "10")
    assert (outcome.status, f"Job {pending_id} has no price yet: it is pending." in outcome.err) == (2, True)


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        ((), "The top-up is missing, or given twice."),
        (("5", "--time", "10"), "The top-up is missing, or given twice."),
        (("--time", "0"), "'0' is no time to add."),
        (("--time", "soon"), "'soon' is not a duration"),
    ],
)
def test_a_top_up_is_an_amount_or_a_time(invoke: Invoke, args: tuple[str, ...], complaint: str) -> None:
    refused = invoke("job", "topup", "1", *args)
    assert (refused.exit_code, complaint in refused.stderr) == (2, True), refused.stderr
