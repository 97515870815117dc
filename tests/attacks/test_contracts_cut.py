"""The owner of the contracts tries to take a larger cut than providers and customers agreed to."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest

from deepgrid.chain.node.values import Cut
from deepgrid.errors import ContractError
from deepgrid.lifecycle.states import JobStatus
from tests.attacks.market import Market, open_market
from tests.chain.grid import CREDIT, RATE, Grid, running_grid

NOTICE_S = 7 * 86_400
_label = itertools.count()


@pytest.fixture
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    """A grid for each test: tests change the cut for the whole grid."""
    with running_grid(tmp_path_factory.mktemp("cut")) as grid:
        yield grid


@pytest.fixture
async def market(grid: Grid) -> AsyncIterator[Market]:
    async with open_market(grid, f"cut{next(_label)}") as market:
        yield market


async def announce(market: Market, percent: int) -> str:
    """Announce a cut as the owner. Returns the name of the error if it is refused."""
    return await market.refusal(market.people.operator, "MetaScheduler", "setDeepsquareCut", percent)


async def settled_for_ten_minutes(grid: Grid, market: Market, job_id: int) -> int:
    """Return the provider's pay for a claimed job that ran for 10 minutes."""
    provider = market.people.provider
    before = await market.chain.balance(provider.address)
    await provider.set_running(job_id, 0)
    grid.anvil.pass_time(600)
    await provider.settle(job_id, JobStatus.FINISHED, 10)
    return await market.chain.balance(provider.address) - before


@pytest.mark.attack(
    "the cut is set to 100 %, or just above the bound",
    attacker="the owner of the contracts",
    gain="nothing: refused",
    defence="MAX_DEEPSQUARE_CUT of 50 % in the contract",
)
async def test_a_cut_above_the_bound_is_refused(market: Market) -> None:
    for percent in (51, 100, 2**256 - 1):
        assert await announce(market, percent) == "InvalidConstant"
    assert await market.chain.cut() == Cut(20, 0, 0)


@pytest.mark.attack(
    "the highest cut is announced and put in force at once",
    attacker="the owner of the contracts",
    gain="nothing for 7 days: jobs are assigned and settled with the old cut",
    defence="a notice period in the contract",
)
async def test_a_cut_takes_effect_only_after_its_notice_period(grid: Grid, market: Market) -> None:
    assert await announce(market, 50) == ""
    with pytest.raises(ContractError) as refused:
        await market.people.operator.apply_cut()
    assert refused.value.name == "CutNotDue"
    job_id = await market.claimed(200 * CREDIT)
    assert (await market.chain.job(job_id)).cut_percent == 20
    grid.anvil.pass_time(NOTICE_S - 60)
    assert await market.refusal(market.people.operator, "MetaScheduler", "applyDeepsquareCut") == "CutNotDue"
    announced = await market.chain.cut()
    assert (announced.percent, announced.next_percent) == (20, 50)


@pytest.mark.attack(
    "the announced cut takes effect while the provider holds a job",
    attacker="the owner of the contracts",
    gain="nothing on that job: the provider keeps 80 % of it",
    defence="a job's cut is fixed when it is assigned",
)
async def test_a_claimed_job_keeps_its_cut(grid: Grid, market: Market) -> None:
    await announce(market, 50)
    grid.anvil.pass_time(NOTICE_S)
    job_id = await market.claimed(200 * CREDIT)
    stranger = await market.stranger("anybody")
    await stranger.apply_cut()
    assert (await market.chain.cut()).percent == 50
    assert await settled_for_ten_minutes(grid, market, job_id) == 10 * RATE * 80 // 100
    assert (await market.chain.job(await market.claimed(200 * CREDIT))).cut_percent == 50


@pytest.mark.attack(
    "a low cut is announced and replaced by a high one just before it is due",
    attacker="the owner of the contracts",
    gain="nothing: the period starts again",
    defence="a later notice replaces the earlier one and its time",
)
async def test_a_replaced_notice_starts_its_period_again(grid: Grid, market: Market) -> None:
    await announce(market, 10)
    grid.anvil.pass_time(NOTICE_S)
    await announce(market, 50)
    assert await market.refusal(market.people.operator, "MetaScheduler", "applyDeepsquareCut") == "CutNotDue"
    assert (await market.chain.cut()).percent == 20


@pytest.mark.attack(
    "strangers, the provider and the meta-scheduler set or cancel the cut",
    attacker="a stranger on chain",
    gain="nothing",
    defence="only the owner can announce a cut; a notice is used once",
)
async def test_only_the_owner_changes_the_cut(grid: Grid, market: Market) -> None:
    stranger = await market.stranger("nobody")
    for who in (stranger, market.people.provider, market.people.customer):
        assert await market.refusal(who, "MetaScheduler", "setDeepsquareCut", 0) == "OwnableUnauthorizedAccount"
    assert await market.refusal(stranger, "MetaScheduler", "applyDeepsquareCut") == "CutNotDue"
    await announce(market, 30)
    grid.anvil.pass_time(NOTICE_S)
    await stranger.apply_cut()
    assert await market.refusal(stranger, "MetaScheduler", "applyDeepsquareCut") == "CutNotDue"
    assert await market.chain.cut() == Cut(30, 0, 0)
