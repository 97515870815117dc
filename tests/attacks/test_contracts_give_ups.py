"""Customers try to make the operator and providers pay for jobs that never run, or that end before others' jobs."""

from __future__ import annotations

import importlib.resources
import itertools
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from deepgrid.chain.batches import Request
from deepgrid.chain.node.values import coded_id, coded_wishes
from deepgrid.chain.writer import Writer
from deepgrid.lifecycle.job import JobDefinition, Wishes
from deepgrid.lifecycle.states import JobStatus
from deepgrid.operator import rounds
from tests.attacks.market import Market, open_market
from tests.chain.grid import CREDIT, Grid, running_grid
from tests.operator.office import Office, office_of

SMALL = JobDefinition(0, 1, 1, 1, "")  # the cheapest request
LOCKED = 100 * CREDIT
LEAST_WAIT_S = 300
LATEST_S = LEAST_WAIT_S + 60 + 360  # when the operator has given up a job of `soon`
JOBS = 30
_label = itertools.count()


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    with running_grid(tmp_path_factory.mktemp("give-ups")) as grid:
        yield grid


@pytest.fixture
async def market(grid: Grid) -> AsyncIterator[Market]:
    async with open_market(grid, f"give-ups{next(_label)}") as market:
        yield market


async def soon(market: Market) -> Wishes:
    """Return wishes with the earliest time to give up, and with a price that no cluster has."""
    return Wishes(max_rate_wei=1, give_up_at=await market.chain.now() + LEAST_WAIT_S + 60)


@pytest.mark.attack(
    "requests that are given up at once, 30 in one call",
    attacker="a customer",
    gain="nothing: refused",
    defence="the contract refuses times to give up that are less than 5 minutes away",
)
@pytest.mark.parametrize("ahead_s", [-(10**6), -1, 0, LEAST_WAIT_S - 30])
async def test_a_request_that_is_given_up_at_once_is_refused(market: Market, ahead_s: int) -> None:
    attacker = await market.stranger(f"at-once{ahead_s}", credits=JOBS * 100)
    wishes = coded_wishes(Wishes(give_up_at=await market.chain.now() + ahead_s))
    job, permit = (((0, 1, 1, 1, "", 0, [], []), LOCKED, b"", False)), (0, 0, 27, bytes(32), bytes(32))
    refused = [
        await market.refusal(attacker, "MetaScheduler", "requestNewJobWithWishes", *job, wishes),
        await market.refusal(attacker, "MetaScheduler", "requestNewJobWithWishesAndPermit", *job, wishes, permit),
        await market.refusal(attacker, "MetaScheduler", "requestNewJobsWithWishes", [job] * JOBS, [wishes] * JOBS),
    ]
    assert refused == ["GiveUpTooSoon"] * 3
    assert await market.chain.balance(attacker.address) == JOBS * LOCKED


# -- who pays how much gas ------------------------------------------------------------------------


async def requested(market: Market, who: Writer, wishes: Wishes) -> tuple[list[int], int]:
    """Return a batch of jobs, and the gas of each."""
    first = await market.chain.job_count() + 1
    jobs = [((0, 1, 1, 1, "", 0, [], []), LOCKED, b"", False)] * JOBS
    receipt = await market.call(who, "MetaScheduler", "requestNewJobsWithWishes", jobs, [coded_wishes(wishes)] * JOBS)
    return list(range(first, first + JOBS)), receipt.gas_used // JOBS


async def in_one_call(market: Market, who: Writer, function: str, items: Sequence[object]) -> int:
    """Return the gas of each item of a batch."""
    return (await market.call(who, "MetaScheduler", function, items)).gas_used // len(items)


async def cancelled(market: Market, who: Writer, job_ids: Sequence[int]) -> int:
    """Return the gas of each cancel."""
    used = [(await market.call(who, "MetaScheduler", "cancelJob", coded_id(one))).gas_used for one in job_ids]
    return sum(used) // len(used)


@dataclass
class Jobs:
    """Jobs of an attacker, and the gas per job that the attacker, the operator and the provider have paid."""

    attacker: Writer
    ids: list[int]
    paid: int
    others: int


@asynccontextmanager
async def assigned(market: Market, name: str) -> AsyncIterator[Jobs]:
    """Yield jobs that the operator assigned in one batch.

    At the end the attacker has its credits, and has paid more gas.
    """
    attacker = await market.stranger(name, credits=JOBS * 100)
    ids, paid = await requested(market, attacker, Wishes())
    wanted = [(coded_id(one), market.people.provider.address) for one in ids]
    jobs = Jobs(attacker, ids, paid, await in_one_call(market, market.people.operator, "metaScheduleJobs", wanted))
    yield jobs
    assert await market.chain.balance(attacker.address) == JOBS * LOCKED
    assert jobs.others < jobs.paid


def check_gas(attack: str, attacker: int, others: int) -> None:
    """Check that the gas is within 2 % of docs/explanation/contracts.md. The zero bytes of addresses differ."""
    found = json.loads((importlib.resources.files("contracts") / "attacks.json").read_text())["gas"][attack]
    assert [attacker, others] == pytest.approx(found, rel=0.02)


@pytest.mark.attack(
    "requests that no cluster can take, given up as early as possible",
    attacker="a customer",
    gain="the operator pays half of the gas that the attacker pays, whose credits are locked for 6 minutes",
    defence="the operator gives jobs up in batches, and the contract refuses times less than 5 minutes away",
)
async def test_giving_up_costs_the_operator_less_than_the_request(market: Market, grid: Grid) -> None:
    attacker = await market.stranger("patient", credits=JOBS * 100)
    job_ids, paid = await requested(market, attacker, await soon(market))
    grid.anvil.pass_time(LATEST_S)
    others = await in_one_call(market, market.people.operator, "giveUpJobs", [coded_id(one) for one in job_ids])
    assert await market.chain.balance(attacker.address) == JOBS * LOCKED
    assert others < 0.6 * paid
    check_gas("giving_up_after_five_minutes", paid, others)


@pytest.mark.attack(
    "a cancel of each job as soon as it is assigned",
    attacker="a customer",
    gain="the operator pays an eighth of the gas that the attacker pays",
    defence="assignments are made in batches",
)
async def test_cancelling_assigned_jobs_costs_the_customer_more(market: Market) -> None:
    async with assigned(market, "assigned") as jobs:
        jobs.paid += await cancelled(market, jobs.attacker, jobs.ids)
    check_gas("cancelling_when_assigned", jobs.paid, jobs.others)


@pytest.mark.attack(
    "a cancel of each job as soon as it is claimed",
    attacker="a customer",
    gain="operator and provider together pay half of the gas that the attacker pays",
    defence="assignments, claims and reports are made in batches",
)
async def test_cancelling_claimed_jobs_costs_the_customer_more(market: Market) -> None:
    provider = market.people.provider
    async with assigned(market, "claimed") as jobs:
        jobs.others += (await market.call(provider, "MetaScheduler", "claimNextJobs", JOBS)).gas_used // JOBS
        jobs.paid += await cancelled(market, jobs.attacker, jobs.ids)
        reports = [(coded_id(one), int(JobStatus.CANCELLED), 0, "", 0) for one in jobs.ids]
        jobs.others += await in_one_call(market, provider, "providerSetJobStatuses", reports)
    check_gas("cancelling_when_claimed", jobs.paid, jobs.others)


# -- whose jobs come first ------------------------------------------------------------------------


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Grid]:
    """A separate grid: the operator's rounds would contain the jobs of other tests."""
    with running_grid(tmp_path / "chain") as grid:
        yield grid


@pytest.fixture
async def office(empty: Grid, tmp_path: Path) -> AsyncIterator[Office]:
    async with office_of(empty, tmp_path) as office:
        yield office


async def one_round(office: Office) -> int:
    """Do what the flow does, without Prefect. Returns the number of the operator's transactions."""
    await office.catch_up()
    chain, me = office.people.chain, office.session.writer.address
    before, _ = await chain.transaction_counts(me)
    seen = await rounds.read_market(office.session)
    decision = await rounds.decide(office.session, seen)
    ended = await rounds.end_jobs(office.session, seen)
    await rounds.tell(office.session, decision, 0, len(ended))
    after, _ = await chain.transaction_counts(me)
    return after - before


@pytest.mark.attack(
    "120 jobs to give up, requested before other customers' jobs",
    attacker="a customer",
    gain="one place per round before another customer's job; the operator sends one transaction per round",
    defence="customers take turns, and the operator gives jobs up in batches",
)
async def test_a_flood_of_give_ups_does_not_come_first(office: Office) -> None:
    people = office.people
    await people.operator.mint(people.provider.address, 12_000 * CREDIT)  # its owner is the attacker
    for who, credits in ((people.provider, 12_000), (people.customer, 100)):
        await who.approve(credits * CREDIT)
    wishes = Wishes(max_rate_wei=1, give_up_at=await people.chain.now() + LEAST_WAIT_S + 60)
    flood = await people.provider.request_jobs([Request(SMALL, LOCKED, "", wishes=wishes)] * 120)
    (honest,) = await people.customer.request_jobs([Request(SMALL, LOCKED, "", wishes=wishes)])
    office.pass_time(LATEST_S)
    assert await one_round(office) == 1
    jobs = {job.id: job.status for job in await people.chain.jobs([*flood, honest])}
    assert jobs[honest] is JobStatus.CANCELLED
    assert [job_id for job_id in flood if jobs[job_id] is JobStatus.CANCELLED] == flood[:99]
    assert await one_round(office) == 1
    assert {job.status for job in await people.chain.jobs(flood)} == {JobStatus.CANCELLED}
    assert await one_round(office) == 0


@pytest.mark.attack(
    "jobs that are given up a second after each other",
    attacker="a customer",
    gain="nothing: they make the operator start one round, and send one transaction",
    defence="the operator gives jobs up at full five minutes",
)
async def test_give_ups_in_a_row_make_one_round(office: Office) -> None:
    people = office.people
    await people.customer.approve(20 * LOCKED)
    first = (await people.chain.now() // 300 + 3) * 300
    wishes = [Wishes(max_rate_wei=1, give_up_at=first + second) for second in range(20)]
    job_ids = await people.customer.request_jobs([Request(SMALL, LOCKED, "", wishes=one) for one in wishes])
    office.pass_time(first - await people.chain.now() + 20)
    assert await one_round(office) == 0, "all of them are over, and none is given up alone"
    assert office.session.next_round_at is not None, "a round is due"
    office.pass_time(300)
    assert await one_round(office) == 1
    assert {job.status for job in await people.chain.jobs(job_ids)} == {JobStatus.CANCELLED}
