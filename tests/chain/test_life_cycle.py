"""A job's life on the real contracts. Every end divides the deposit to the wei."""

from __future__ import annotations

import asyncio

import pytest

from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.writer import Writer
from deepgrid.errors import ContractError, NotFound
from deepgrid.lifecycle.states import JobStatus
from tests.chain.grid import CREDIT, DEFINITION, HARDWARE, LABELS, PRICES, RATE, Grid, People

S = JobStatus


async def test_whole_life_reads_back_as_values(grid: Grid, people: People) -> None:
    chain = people.chain
    job_id = await people.request()
    pending = await chain.job(job_id)
    assert (pending.status, pending.provider, pending.granted_minutes) == (S.PENDING, None, 0)
    assert (pending.name, pending.customer, pending.locked_wei) == ("a job", people.customer.address, 200 * CREDIT)
    assert pending.definition == DEFINITION
    assert pending.submitted_at > 0
    assert not pending.delegate_spending

    await people.operator.meta_schedule(job_id, people.provider.address)
    assigned = await chain.job(job_id)
    assert (assigned.status, assigned.provider) == (S.META_SCHEDULED, people.provider.address)
    assert (assigned.rate_wei_per_minute, assigned.cut_percent, assigned.granted_minutes) == (RATE, 20, 13)
    assert assigned.assigned_at > 0
    assert assigned.claimed_at == 0
    assert await chain.next_claimable(people.provider.address)

    claimed = await people.provider.claim_next()
    assert claimed is not None
    assert (claimed.job_id, claimed.granted_minutes, claimed.definition) == (job_id, 13, DEFINITION)
    assert claimed.customer == people.customer.address
    assert not await chain.next_claimable(people.provider.address)
    assert await chain.claimed_jobs(people.provider.address) == [job_id]

    await people.provider.set_running(job_id, 0)
    started = (await chain.job(job_id)).started_at
    grid.anvil.pass_time(301)
    await people.provider.settle(job_id, S.FAILED, 6, "exit 3", 768)
    done = await chain.job(job_id)
    assert (done.status, done.exit_status, done.last_error) == (S.FAILED, 768, "exit 3")
    assert (done.final_cost_wei, done.started_at) == (6 * RATE, started)
    assert done.ended_at - done.started_at >= 301

    history = await chain.history(job_id)
    assert [(step.before, step.after) for step in history] == [
        (None, S.PENDING), (S.PENDING, S.META_SCHEDULED), (S.META_SCHEDULED, S.SCHEDULED),
        (S.SCHEDULED, S.RUNNING), (S.RUNNING, S.FAILED),
    ]  # fmt: skip
    assert (history[0].at, history[-1].at) == (done.submitted_at, done.ended_at)
    assert len({step.tx_hash for step in history}) == 5


ENDS = [
    # end reported, minutes that passed, minutes reported, minutes billed
    (S.FINISHED, 5, 5, 5),
    (S.FINISHED, 0, 1, 1),
    (S.FAILED, 5, 0, 0),
    (S.FAILED, 5, 4, 4),
    (S.OUT_OF_CREDITS, 14, 14, 14),  # 204.4 credits: capped at the 200 that are locked
    (S.PANICKED, 5, 5, 0),
]


@pytest.mark.parametrize(("end", "passed", "reported", "billed"), ENDS)
async def test_every_end_divides_the_deposit(
    grid: Grid, people: People, end: JobStatus, passed: int, reported: int, billed: int
) -> None:
    chain, locked = people.chain, 200 * CREDIT
    cut_before = await chain.platform_cut()
    job_id = await people.running(locked)
    grid.anvil.pass_time(60 * passed - 20 if passed else 1)
    receipt = await people.provider.settle(job_id, end, reported)
    bill = await chain.settlement(job_id)
    assert bill is not None
    cost = min(billed * RATE, locked)
    assert (bill.billed_minutes, bill.paid_wei, bill.cut_wei) == (billed, cost - cost * 20 // 100, cost * 20 // 100)
    assert bill.paid_wei + bill.cut_wei + bill.refunded_wei == locked
    assert bill.tx_hash == receipt.tx_hash
    assert await chain.balance(people.provider.address) == bill.paid_wei
    assert await chain.balance(people.customer.address) == 10_000 * CREDIT - cost
    assert await chain.platform_cut() - cut_before == bill.cut_wei
    assert (await chain.job(job_id)).status is end


@pytest.mark.parametrize("end", [S.FAILED, S.CANCELLED])
async def test_minutes_are_billed_although_the_chain_dropped_the_running_report(
    grid: Grid, people: People, end: JobStatus
) -> None:
    """The supervisor that reported RUNNING is gone, so the report is not sent again. Another one settles the job."""
    job_id = await people.running()
    await people.provider.sender.close()
    grid.anvil.call("anvil_rollback", 2)  # the report, and the block behind it
    assert (await people.chain.job(job_id)).status is S.SCHEDULED
    grid.anvil.pass_time(200)
    await people.provider.settle(job_id, end, 3, "", 768)
    bill, job = await people.chain.settlement(job_id), await people.chain.job(job_id)
    assert bill is not None
    assert (bill.billed_minutes, job.status, job.exit_status) == (3, end, 768)
    assert job.started_at > 0


@pytest.mark.parametrize("end", [S.FAILED, S.CANCELLED])
async def test_an_end_of_a_job_that_is_over_is_an_error(people: People, end: JobStatus) -> None:
    job_id = await people.running()
    await people.provider.settle(job_id, end, 1)
    with pytest.raises(ContractError) as refused:
        await people.provider.settle(job_id, end, 1)
    assert refused.value.name == "SameStatusError"


async def test_cancel_before_the_claim_refunds_all_at_once(people: People) -> None:
    job_id = await people.assigned()
    await people.customer.cancel_job(job_id)
    bill = await people.chain.settlement(job_id)
    assert bill is not None
    assert (bill.paid_wei, bill.cut_wei, bill.refunded_wei) == (0, 0, 200 * CREDIT)
    assert (await people.chain.job(job_id)).status is S.CANCELLED
    assert await people.provider.claim_next() is None


async def test_cancel_while_running_is_a_request_with_a_fee(people: People) -> None:
    job_id = await people.running()
    await people.customer.cancel_job(job_id)
    asked = await people.chain.job(job_id)
    assert (asked.status, asked.has_cancel_request) == (S.RUNNING, True)
    assert asked.cancel_requested_at > 0
    assert await people.chain.settlement(job_id) is None
    await people.provider.settle(job_id, S.CANCELLED, 1)
    bill = await people.chain.settlement(job_id)
    fee_minutes = (await people.chain.constants()).cancellation_fee_minutes
    assert bill is not None
    assert bill.billed_minutes == fee_minutes
    assert bill.paid_wei + bill.cut_wei + bill.refunded_wei == 200 * CREDIT


async def test_refused_job_is_pending_again(people: People) -> None:
    job_id = await people.assigned()
    await people.provider.refuse_job(job_id)
    job = await people.chain.job(job_id)
    assert (job.status, job.provider, job.last_refuser) == (S.PENDING, None, people.provider.address)
    assert job.rate_wei_per_minute == job.granted_minutes == job.assigned_at == 0


async def test_a_running_report_may_be_dated_back_to_the_claim(grid: Grid, people: People) -> None:
    job_id = await people.assigned()
    await people.provider.claim_next()
    grid.anvil.pass_time(170)
    await people.provider.set_running(job_id, 2)
    job = await people.chain.job(job_id)
    assert job.claimed_at < job.started_at <= await people.chain.now() - 120


async def test_long_error_text_is_cut(people: People) -> None:
    job_id = await people.running()
    await people.provider.settle(job_id, S.FAILED, 1, "é" * 1000, 256)
    assert (await people.chain.job(job_id)).last_error == "é" * 250


async def test_requests_with_and_without_allowance(people: People) -> None:
    with pytest.raises(ContractError) as refused:
        await people.customer.request_job(DEFINITION, 150 * CREDIT, "no allowance")
    assert refused.value.name == "ERC20InsufficientAllowance"
    await people.customer.approve(150 * CREDIT)
    assert await people.chain.allowance(people.customer.address) == 150 * CREDIT
    job_id = await people.customer.request_job(DEFINITION, 150 * CREDIT, "n" * 32, delegate=True)
    job = await people.chain.job(job_id)
    assert (job.name, job.delegate_spending) == ("n" * 32, True)
    assert await people.chain.jobs_by_customer(people.customer.address) == [job_id]
    assert await people.chain.has_jobs(people.customer.address)
    assert not await people.chain.has_jobs(people.provider.address)
    assert job_id <= await people.chain.job_count()
    assert await people.chain.accepts_requests()


async def test_many_jobs_are_read_in_the_order_asked_for(people: People) -> None:
    first, second = await people.request(), await people.request()
    ids = [second, first] * 60
    assert [job.id for job in await people.chain.jobs(ids)] == ids
    assert await people.chain.jobs([]) == []
    with pytest.raises(NotFound, match="does not exist"):
        await people.chain.job(10**9)


async def test_provider_proposes_and_is_approved(people: People) -> None:
    chain, address = people.chain, people.provider.address
    provider = await chain.provider(address)
    assert (provider.hardware, provider.prices, provider.labels) == (HARDWARE, PRICES, LABELS)
    assert (provider.approved, provider.banned, provider.waiting_for_approval) == (True, False, False)
    assert await chain.proposal(address) is None
    await people.provider.register(HARDWARE, PRICES, ())
    again = await chain.provider(address)
    assert (again.approved, again.waiting_for_approval, again.labels) == (True, True, LABELS)
    proposal = await chain.proposal(address)
    assert proposal is not None
    assert proposal.labels == ()
    assert address in [listed.address for listed in await chain.providers()]
    with pytest.raises(NotFound):
        await chain.provider(people.customer.address)


async def test_more_providers_than_a_page(grid: Grid, people: People) -> None:
    before = len(await people.chain.providers())
    for number in range(25):
        wallet = grid.new_key(f"many-{before}-{number}")
        await Writer(people.chain, Sender(people.chain, wallet)).register(HARDWARE, PRICES, LABELS)
    listed = await people.chain.providers()
    assert len(listed) == len({provider.address for provider in listed}) == before + 25
    assert sum(provider.waiting_for_approval for provider in listed[-25:]) == 25


async def test_transfer_and_roles(people: People) -> None:
    await people.customer.transfer(people.provider.address, 7)
    assert await people.chain.balance(people.provider.address) == 7
    assert await people.chain.has_role("METASCHEDULER_ROLE", people.operator.address)
    assert await people.chain.has_role("MINTER_ROLE", people.operator.address, "Credit")
    assert not await people.chain.has_role("METASCHEDULER_ROLE", people.customer.address)


async def test_a_cancel_mined_after_the_claim_becomes_a_request(own_grid: Grid, own_people: People) -> None:
    """The estimate was for an immediate cancel; a request to the provider takes more gas."""
    anvil = own_grid.anvil
    job_id = await own_people.request()
    await own_people.operator.meta_schedule(job_id, own_people.provider.address)
    anvil.call("evm_setAutomine", False)
    anvil.call("evm_setIntervalMining", 0)
    cancelling = asyncio.create_task(own_people.customer.cancel_job(job_id))
    async with asyncio.timeout(60):
        while anvil.call("txpool_status")["pending"] != "0x1":
            await asyncio.sleep(0.02)
    anvil.call("anvil_dropAllTransactions")
    anvil.call("evm_setAutomine", True)
    await own_people.provider.claim_next()
    await cancelling
    job = await own_people.chain.job(job_id)
    assert (job.status, job.has_cancel_request) == (S.SCHEDULED, True)
