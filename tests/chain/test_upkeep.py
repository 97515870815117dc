"""Top-ups, queues, time-outs and bans on the real contracts."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepgrid.billing.expected import releasable_wei
from deepgrid.chain.node.contract import interface
from deepgrid.chain.node.values import Queues, TrackRecord
from deepgrid.errors import ContractError, NotFound
from deepgrid.lifecycle.job import ANSWER_MINUTES, HELD_FOR_S
from deepgrid.lifecycle.minutes import started_minutes
from deepgrid.lifecycle.states import JobStatus
from tests.chain.grid import CREDIT, DEFINITION, RATE, Grid, People

S = JobStatus
REPOSITORY = Path(__file__).parents[2]


async def test_a_top_up_raises_the_limit_and_waits_for_the_provider(people: People) -> None:
    job_id = await people.running()
    await people.customer.top_up(job_id, 100 * CREDIT, approve_first=100 * CREDIT)
    job = await people.chain.job(job_id)
    assert (job.locked_wei, job.pending_top_up_wei) == (300 * CREDIT, 100 * CREDIT)
    assert job.granted_minutes == 300 * CREDIT // RATE
    assert await people.chain.queues(people.provider.address) == Queues(0, 0, 1)
    hint = await people.provider.claim_next_top_up()
    assert hint is not None
    assert (hint.job_id, hint.added_minutes) == (job_id, job.granted_minutes - 200 * CREDIT // RATE)
    assert (await people.chain.job(job_id)).pending_top_up_wei == 0
    assert await people.provider.claim_next_top_up() is None


async def test_a_cancel_request_waits_once_for_the_provider(people: People) -> None:
    job_id = await people.running()
    await people.customer.cancel_job(job_id)
    await people.customer.cancel_job(job_id)
    assert await people.chain.queues(people.provider.address) == Queues(0, 1, 0)
    assert await people.provider.claim_next_cancelling() == job_id
    assert await people.provider.claim_next_cancelling() is None


async def test_an_unanswered_cancel_releases_what_cannot_be_billed_and_holds_the_rest(
    grid: Grid, people: People
) -> None:
    chain, job_id = people.chain, await people.running()
    await people.customer.cancel_job(job_id)
    before = await chain.balance(people.customer.address)
    answer_s = 60 * ANSWER_MINUTES
    grid.anvil.pass_time(answer_s)
    await people.customer.cancel_job(job_id)
    job = await chain.job(job_id)
    held = RATE * started_minutes(job.started_at, job.cancel_requested_at + answer_s)
    assert (job.status, job.locked_wei, job.held_wei) == (S.RUNNING, 200 * CREDIT, held)
    assert job.released_wei == job.returned_wei == 200 * CREDIT - held
    assert await chain.balance(people.customer.address) == before + job.released_wei
    assert job.held_until == job.cancel_requested_at + HELD_FOR_S
    with pytest.raises(ContractError, match="takes no more credits"):
        await people.customer.top_up(job_id, CREDIT, approve_first=CREDIT)
    await people.provider.settle(job_id, S.CANCELLED, 1)
    job = await chain.job(job_id)
    fee = RATE * (await chain.constants()).cancellation_fee_minutes
    assert (job.final_cost_wei, job.held_wei, job.returned_wei) == (fee, 0, 200 * CREDIT - fee)
    assert await chain.track_record(people.provider.address) == TrackRecord(1, 0, 0, 0)


@pytest.mark.parametrize(("runs", "asked_before_end"), [(True, 12), (True, 5), (False, 12), (False, 5)])
async def test_what_a_release_returns_is_known_before(
    grid: Grid, people: People, runs: bool, asked_before_end: int
) -> None:
    """The figure says whether to repeat a cancel.

    It is useless if the answer is due after the bought time, 13 minutes.
    """
    job_id = await people.running() if runs else await people.claimed()
    job, constants = await people.chain.job(job_id), await people.chain.constants()
    grid.anvil.pass_time(60 * (job.granted_minutes - asked_before_end))
    await people.customer.cancel_job(job_id)
    answer_minutes, fee_minutes = ANSWER_MINUTES, constants.cancellation_fee_minutes
    known = releasable_wei(await people.chain.job(job_id), answer_minutes=answer_minutes, fee_minutes=fee_minutes)
    grid.anvil.pass_time(60 * answer_minutes)
    await people.customer.cancel_job(job_id)
    job = await people.chain.job(job_id)
    assert job.released_wei == known
    assert (known > 0) is (asked_before_end > answer_minutes)
    assert releasable_wei(job, answer_minutes=answer_minutes, fee_minutes=fee_minutes) == 0


async def test_the_rest_comes_back_a_day_after_an_unanswered_cancel(grid: Grid, people: People) -> None:
    call = {"to": people.chain.book.meta_scheduler, "data": interface("MetaScheduler").encode("TIMEOUT_GRACE")}
    assert int(await people.chain.rpc.call("eth_call", call, "latest"), 16) == HELD_FOR_S
    assert f"const HELD_FOR_S = {HELD_FOR_S:_};\n" in (REPOSITORY / "web/src/job/words.ts").read_text()
    job_id = await people.running()
    await people.customer.cancel_job(job_id)
    grid.anvil.pass_time(HELD_FOR_S)
    await people.customer.cancel_job(job_id)
    job = await people.chain.job(job_id)
    assert (job.status, job.returned_wei) == (S.CANCELLED, 200 * CREDIT)
    assert await people.chain.track_record(people.provider.address) == TrackRecord(1, 0, 0, 1)


async def test_slices_are_bought_only_with_authority_and_allowance(grid: Grid, people: People) -> None:
    job_id = await people.running()
    with pytest.raises(ContractError, match="authority"):
        await people.operator.top_up_delegated(job_id)
    await people.customer.set_spending_limit(job_id, 2000 * CREDIT)
    assert await people.chain.spendable([job_id]) == {job_id: 2000 * CREDIT}
    with pytest.raises(ContractError, match="at most 10, before its end"):
        await people.operator.top_up_delegated(job_id)
    grid.anvil.pass_time(240)
    with pytest.raises(ContractError, match="spend"):
        await people.operator.top_up_delegated(job_id)
    slice_minutes = (await people.chain.constants()).top_up_slice_minutes
    await people.customer.approve(slice_minutes * RATE)
    await people.operator.top_up_delegated(job_id)
    assert (await people.chain.job(job_id)).locked_wei == 200 * CREDIT + slice_minutes * RATE
    assert await people.chain.allowance(people.customer.address) == 0
    assert await people.chain.spendable([job_id]) == {job_id: 2000 * CREDIT - slice_minutes * RATE}


async def test_an_unclaimed_job_is_pending_again_after_the_timeout(grid: Grid, people: People) -> None:
    job_id = await people.assigned()
    with pytest.raises(ContractError) as refused:
        await people.operator.time_out(job_id)
    assert refused.value.name == "TimeoutTooEarly"
    grid.anvil.pass_time(60 * (await people.chain.constants()).claim_timeout_minutes + 1)
    await people.operator.time_out(job_id)
    job = await people.chain.job(job_id)
    assert (job.status, job.last_refuser) == (S.PENDING, people.provider.address)
    assert await people.chain.track_record(people.provider.address) == TrackRecord(0, 0, 0, 1)


async def test_a_job_panicked_by_the_operator_is_refunded(people: People) -> None:
    job_id = await people.running()
    await people.operator.panic_job(job_id, "the cluster burnt down")
    job, bill = await people.chain.job(job_id), await people.chain.settlement(job_id)
    assert (job.status, job.last_error) == (S.PANICKED, "the cluster burnt down")
    assert bill is not None
    assert bill.refunded_wei == 200 * CREDIT
    assert await people.chain.track_record(people.provider.address) == TrackRecord(1, 0, 1, 0)


async def test_a_banned_or_removed_provider_gets_no_jobs(people: People) -> None:
    job_id = await people.request()
    await people.operator.ban_provider(people.provider.address)
    with pytest.raises(ContractError) as refused:
        await people.operator.meta_schedule(job_id, people.provider.address)
    assert refused.value.name == "ProviderNotJoined"
    await people.operator.unban_provider(people.provider.address)
    await people.operator.meta_schedule(job_id, people.provider.address)
    await people.operator.remove_provider(people.provider.address)
    with pytest.raises(NotFound):
        await people.chain.provider(people.provider.address)
    with pytest.raises(ContractError):
        await people.provider.claim_next()


async def test_a_changed_constant_applies_to_later_requests(people: People) -> None:
    minimum = (await people.chain.constants()).minimum_wei
    await people.operator.set_constant("setMinimumAmount", 150 * CREDIT)
    try:
        with pytest.raises(ContractError, match="150"):
            await people.customer.request_job(DEFINITION, 120 * CREDIT, "too little", approve_first=120 * CREDIT)
    finally:
        await people.operator.set_constant("setMinimumAmount", minimum)
