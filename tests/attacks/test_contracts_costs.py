"""Callers of the contracts try to make others pay for gas, flow runs or reading."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest

from deepgrid.chain.node.contract import interface
from deepgrid.chain.node.values import Queues, coded_definition, coded_id
from deepgrid.chain.offers import proposal_hash
from deepgrid.errors import ContractError, InputError
from deepgrid.lifecycle.job import Hardware, JobDefinition, Label
from deepgrid.lifecycle.states import JobStatus
from tests.attacks.market import BLOCK_GAS, Market, open_market
from tests.chain.grid import CREDIT, DEFINITION, HARDWARE, LABELS, PRICES, RATE, Grid, running_grid

MOST_LABELS = 64
NO_NEWS = Queues(0, 0, 0)
_label = itertools.count()


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    with running_grid(tmp_path_factory.mktemp("costs")) as grid:
        yield grid


@pytest.fixture
async def market(grid: Grid) -> AsyncIterator[Market]:
    async with open_market(grid, f"costs{next(_label)}") as market:
        yield market


def labelled(uses: int, affinities: int, text: str = "") -> tuple[object, ...]:
    """Return a definition with more labels than the project's clients allow."""
    coded = list(coded_definition(JobDefinition(1, 1000, 2, 3, text)))
    return (*coded[:6], [("", "")] * uses, [(("", ""), b"==")] * affinities)


# -- definitions -----------------------------------------------------------------------------------


@pytest.mark.attack(
    "2,700 labels, or conditions, in one definition",
    attacker="a customer",
    gain="nothing: the request is refused",
    defence="at most 64 labels and conditions together, checked at the request",
)
@pytest.mark.parametrize(("uses", "affinities"), [(2700, 0), (0, 2700), (1350, 1350), (MOST_LABELS, 1)])
async def test_a_definition_with_too_many_labels_is_refused(market: Market, uses: int, affinities: int) -> None:
    customer = await market.stranger(f"labels{uses}-{affinities}", credits=200)
    request = (labelled(uses, affinities), 100 * CREDIT, b"", False)
    assert await market.refusal(customer, "MetaScheduler", "requestNewJob", *request) == "TooManyLabels"
    assert await market.refusal(customer, "MetaScheduler", "requestNewJobs", [request]) == "TooManyLabels"
    assert await market.chain.balance(customer.address) == 200 * CREDIT


@pytest.mark.attack(
    "the largest definition that the contract accepts: 64 labels and 24 KB of text",
    attacker="a customer",
    gain="the provider's claim costs below 700,000 gas, an eighth of what the customer pays for the request",
    defence="the number of labels and the length of the text are bounded",
)
async def test_the_largest_definition_has_a_bounded_cost(market: Market) -> None:
    people = market.people
    customer = await market.stranger("largest", credits=200)
    definition = labelled(MOST_LABELS, 0, "x" * 256)
    requested = await market.call(customer, "MetaScheduler", "requestNewJob", definition, 100 * CREDIT, b"", False)
    await people.operator.meta_schedule(await market.chain.job_count(), people.provider.address)
    claimed = await market.call(people.provider, "MetaScheduler", "claimNextJob")
    assert claimed.gas_used < 250_000
    assert claimed.gas_used < requested.gas_used


# -- top-ups ---------------------------------------------------------------------------------------


@pytest.mark.attack(
    "repeated top-ups of 0",
    attacker="a stranger on chain",
    gain="nothing: refused, and the provider gets no hint",
    defence="a top-up must be above 0",
)
async def test_a_top_up_of_zero_is_refused(market: Market) -> None:
    people = market.people
    job_id = await people.running()
    stranger = await market.stranger("nothing", credits=10)
    for who in (stranger, people.provider, people.operator, people.customer):
        assert await market.refusal(who, "MetaScheduler", "topUpJob", coded_id(job_id), 0) == "InsufficientFunds"
    assert await market.chain.queues(people.provider.address) == NO_NEWS


@pytest.mark.attack(
    "top-ups of one wei",
    attacker="a stranger on chain",
    gain="nothing: refused below the cost of one minute of the job",
    defence="at least one minute from anyone but the customer",
)
async def test_a_top_up_below_a_minute_is_refused(market: Market) -> None:
    people = market.people
    job_id = await people.running()
    stranger = await market.stranger("wei", credits=100)
    for wei in (1, RATE - 1):
        assert await market.refusal(stranger, "MetaScheduler", "topUpJob", coded_id(job_id), wei) == "InsufficientFunds"
    await stranger.top_up(job_id, RATE)
    assert await market.chain.balance(stranger.address) == 100 * CREDIT - RATE
    assert (await market.chain.job(job_id)).granted_minutes == 14  # 200 credits alone buy 13 minutes


@pytest.mark.attack(
    "repeated top-ups of one wei of its own job",
    attacker="a customer",
    gain="nothing: the provider gets one hint, as soon as a minute is paid",
    defence="a hint is queued only when the time limit rises",
)
async def test_top_ups_below_a_minute_give_no_hint(market: Market) -> None:
    people = market.people
    job_id = await people.running()  # 200 credits are 13 minutes and 10.2 credits
    await people.customer.approve(100 * CREDIT)
    for _ in range(10):
        await people.customer.top_up(job_id, 1)
    assert await market.chain.queues(people.provider.address) == NO_NEWS
    await people.customer.top_up(job_id, 5 * CREDIT)
    await people.customer.top_up(job_id, 5 * CREDIT)
    hint = await people.provider.claim_next_top_up()
    assert hint is not None and hint.added_minutes == 1
    assert await people.provider.claim_next_top_up() is None


@pytest.mark.attack(
    "automatic top-ups in a row, to lock all of the customer's allowance",
    attacker="a provider",
    gain="one slice of 30 minutes too early, refunded to the customer if unused",
    defence="a slice is bought only when at most one is left",
)
async def test_automatic_top_ups_lock_one_slice_ahead_at_most(market: Market) -> None:
    people = market.people
    job_id = await people.running()
    await people.customer.approve(9_000 * CREDIT)
    await people.customer.set_delegate_spending(job_id, True)
    taken = 0
    for _ in range(20):
        market.grid.anvil.pass_time(60)
        taken += await market.refusal(people.provider, "MetaScheduler", "topUpJobDelegate", coded_id(job_id)) == ""
    assert taken == 1  # the rest of the limit, which is the deposit
    assert (await market.chain.job(job_id)).locked_wei == 400 * CREDIT
    await people.provider.settle(job_id, JobStatus.FAILED, 0)
    assert await market.chain.balance(people.customer.address) == 10_000 * CREDIT


@pytest.mark.attack(
    "a top-up of an unclaimed job, which has no rate",
    attacker="a stranger on chain",
    gain="nothing: refused",
    defence="only claimed jobs can be topped up",
)
async def test_a_top_up_before_the_claim_is_refused(market: Market) -> None:
    job_id = await market.people.request()
    stranger = await market.stranger("early", credits=50)
    for wei in (0, 1, 50 * CREDIT):
        refused = await market.refusal(stranger, "MetaScheduler", "topUpJob", coded_id(job_id), wei)
        assert refused == "RunningScheduledStatusOnly"


# -- hints -----------------------------------------------------------------------------------------


@pytest.mark.attack(
    "a new cancel request each time the provider has taken one off its queue",
    attacker="a customer",
    gain="one hint, for one request",
    defence="only the first request of a job is queued",
)
async def test_repeated_cancel_requests_give_one_hint(market: Market) -> None:
    people = market.people
    job_id = await people.running()
    heard = 0
    for _ in range(5):
        await people.customer.cancel_job(job_id)
        heard += await people.provider.claim_next_cancelling() is not None
    assert heard == 1
    assert (await market.chain.job(job_id)).has_cancel_request


@pytest.mark.attack(
    "reports, refusals and claims of other providers' jobs, 100 in one call",
    attacker="a provider",
    gain="nothing: each item is skipped, and the caller pays",
    defence="only a job's own provider can report it",
)
async def test_a_batch_about_other_providers_jobs_changes_nothing(market: Market) -> None:
    job_id = await market.people.running()
    rival = await market.stranger("rival")
    report = (coded_id(job_id), int(JobStatus.PANICKED), 0, "", 0)
    await market.call(rival, "MetaScheduler", "providerSetJobStatuses", [report] * 100)
    assert await market.refusal(rival, "MetaScheduler", "refuseJob", coded_id(job_id)) == "ProviderNotJoined"
    assert await market.refusal(rival, "MetaScheduler", "claimNextJobs", 2**256 - 1) == "ProviderNotJoined"
    job = await market.chain.job(job_id)
    assert (job.status, job.provider) == (JobStatus.RUNNING, market.people.provider.address)


# -- what others have to read ----------------------------------------------------------------------


@pytest.mark.attack(
    "error texts of 20 KB at the ends of many jobs, cut in the middle of a character",
    attacker="a provider",
    gain="1,024 bytes per job; lists of jobs stay readable",
    defence="the contract keeps only the beginning, in whole characters",
)
async def test_long_error_texts_are_cut(market: Market) -> None:
    people = market.people
    jobs = [await people.running() for _ in range(3)]
    for job_id in jobs:
        report = (coded_id(job_id), int(JobStatus.FAILED), 0, "€" * 7000, 1)
        await market.call(people.provider, "MetaScheduler", "providerSetJobStatus", *report)
    for job in await market.chain.jobs(jobs):
        assert job.last_error == "€" * 341  # 1,023 bytes


@pytest.mark.attack(
    "a huge proposal: nodes, labels, texts",
    attacker="a stranger on chain",
    gain="nothing: refused",
    defence="1,024 nodes, 64 labels of 256 bytes in key and value",
)
async def test_huge_proposals_are_refused(market: Market) -> None:
    stranger = await market.stranger("absurd")
    small = Hardware((0,), (1,), (1,))
    nodes = Hardware((0,) * 1025, (0,) * 1024 + (1,), (0,) * 1024 + (1,))
    tried = {
        "TooManyNodes": (nodes, LABELS),
        "TooManyLabels": (small, (Label("", ""),) * 65),
        "LabelTooLong": (small, (Label("k", "v" * 257),)),
    }
    for error, (hardware, labels) in tried.items():
        with pytest.raises(ContractError) as refused:
            await market.proposal(stranger, hardware, PRICES, labels)
        assert refused.value.name == error
    assert not await market.chain.proposal(stranger.address)


@pytest.mark.attack(
    "the largest allowed proposal, which the operator must approve and remove",
    attacker="a provider",
    gain="the operator's call costs the same as for a small one, below 150,000 gas",
    defence="an approval swaps two versions and copies nothing",
)
async def test_a_large_proposal_costs_the_operator_no_more(market: Market) -> None:
    operator, stranger = market.people.operator, await market.stranger("large")
    nodes = Hardware(*((9,) * 300 for _ in range(3)))
    labels = tuple(Label("k" * 256, "v" * 256) for _ in range(30))
    proposed = await market.proposal(stranger, nodes, PRICES, labels, gas=BLOCK_GAS)
    seen = await market.chain.proposal(stranger.address)
    assert seen is not None
    approved = await operator.approve_proposal(stranger.address, proposal_hash(seen))
    removed = await operator.remove_provider(stranger.address)
    assert proposed.gas_used > 10_000_000
    assert max(approved.gas_used, removed.gas_used) < 175_000


@pytest.mark.attack(
    "many strangers with proposals that are cheap to write and expensive to read",
    attacker="a stranger on chain",
    gain="longer lists, which stay readable",
    defence="each proposal is bounded, and clients read smaller pages",
)
async def test_a_list_of_large_proposals_stays_readable(market: Market) -> None:
    zeros = Hardware((0,) * 1024, (0,) * 1023 + (1,), (0,) * 1023 + (1,))
    labels = tuple(Label("\0" * 256, "\0" * 256) for _ in range(64))
    strangers = [await market.stranger(f"full{number}") for number in range(12)]
    for stranger in strangers:
        await market.proposal(stranger, zeros, PRICES, labels, gas=BLOCK_GAS)
    listed = {one.address: one for one in await market.chain.providers()}
    assert {stranger.address for stranger in strangers} <= listed.keys()
    assert listed[market.people.provider.address].hardware == HARDWARE
    for stranger in strangers:
        await market.people.operator.remove_provider(stranger.address)


# -- the customer's own client ---------------------------------------------------------------------


async def test_the_client_refuses_too_many_labels_before_it_sends_anything(market: Market) -> None:
    many = JobDefinition(1, 1, 1, 1, "x", uses=(Label("a", "b"),) * 60, affinity=DEFINITION.affinity * 3)
    with pytest.raises(InputError) as refused:
        await market.people.customer.request_job(many, 100 * CREDIT, "")
    assert refused.value.message == "The job names 66 labels and conditions; at most 64 fit on chain."


def test_every_error_of_a_refused_call_has_a_name() -> None:
    named = {item["name"] for name in ("MetaScheduler", "ProviderManager") for item in interface(name).errors.values()}
    assert {"TooManyLabels", "CutNotDue", "ProposalChanged", "ProposalTooRecent"} <= named
