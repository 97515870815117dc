"""Time bought from allowances: one slice per run and job while credits last, then one notice to the customer."""

from __future__ import annotations

import asyncio
from unittest.mock import AsyncMock

import pytest

from deepgrid.lifecycle.states import JobStatus
from deepgrid.operator.delegated_top_ups import buy_slice, plan_slices, tell_unpaid
from deepgrid.scheduling.top_ups import Slice, Unpaid
from tests.chain.grid import CREDIT, DEFINITION, RATE
from tests.operator.office import MINUTE_S, Office

SLICE_MINUTES = 30  # the contract's default
SLICE_WEI = SLICE_MINUTES * RATE
BOUGHT_MINUTES = 200 * CREDIT // RATE


@pytest.fixture
async def near_end(office: Office) -> int:
    """A running job with authority to spend, ten minutes from its end."""
    job_id = await office.people.running()
    await office.people.customer.set_spending_limit(job_id, 10_000 * CREDIT)
    office.pass_time((BOUGHT_MINUTES - 10) * MINUTE_S)
    return job_id


async def plan(office: Office) -> list[Slice | Unpaid]:
    await office.catch_up()
    return await plan_slices(office.session, 10)


async def carry_out(office: Office) -> tuple[list[int], list[int]]:
    """Return the ids of the jobs that got a slice, and of those that could not pay."""
    planned = await plan(office)
    slices = [one for one in planned if isinstance(one, Slice)]
    bought = await asyncio.gather(*(buy_slice(office.session, one) for one in slices))
    for one in planned:
        if isinstance(one, Unpaid):
            await tell_unpaid(office.session, one)
    got = [one.job.id for one, did in zip(slices, bought, strict=True) if did]
    return got, [one.job.id for one in planned if isinstance(one, Unpaid)]


async def test_slices_are_bought_until_the_allowance_ends(office: Office, near_end: int) -> None:
    await office.people.customer.approve(2 * SLICE_WEI + 1)
    for slices in (1, 2):
        assert await carry_out(office) == ([near_end], [])
        assert (await office.job(near_end)).locked_wei == 200 * CREDIT + slices * SLICE_WEI
        assert await carry_out(office) == ([], [])  # a second run does nothing twice
        office.pass_time(SLICE_MINUTES * MINUTE_S)
    assert await carry_out(office) == ([], [near_end])
    assert await carry_out(office) == ([], [near_end])
    assert await office.people.chain.allowance(office.people.customer.address) == 1
    ((job_id, kind, text),) = office.notices  # once
    assert (job_id, kind) == (near_end, "top-up")
    assert f"the allowance is used up: the job ends at its limit of {BOUGHT_MINUTES + 60} min" in text


async def test_a_slice_that_the_follower_did_not_report_yet_counts(
    office: Office, near_end: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    await office.people.customer.approve(SLICE_WEI)
    await office.catch_up()
    reported = await office.session.hot()
    assert await carry_out(office) == ([near_end], [])
    monkeypatch.setattr(office.session, "hot", AsyncMock(return_value=reported))
    assert await carry_out(office) == ([], [])
    assert not office.notices


async def test_a_job_that_ends_later_or_has_no_authority_gets_nothing(office: Office, near_end: int) -> None:
    later = await office.people.running()
    await office.people.customer.set_delegate_spending(later, True)
    await office.people.customer.set_delegate_spending(near_end, False)
    await office.people.customer.approve(10 * SLICE_WEI)
    assert await carry_out(office) == ([], [])


async def test_jobs_of_one_customer_share_the_allowance_and_no_transaction_reverts(office: Office) -> None:
    first, second = [await office.people.running() for _ in range(2)]
    for job_id in (first, second):
        await office.people.customer.set_spending_limit(job_id, 10_000 * CREDIT)
    office.pass_time((BOUGHT_MINUTES - 10) * MINUTE_S)
    await office.people.customer.approve(SLICE_WEI)
    sent = _transactions(office)
    assert await carry_out(office) == ([first], [second])
    assert _transactions(office) == sent + 1


async def test_a_customer_without_credits_is_notified(office: Office, near_end: int) -> None:
    await office.people.customer.approve(2 * SLICE_WEI)
    left = await office.people.chain.balance(office.people.customer.address)
    await office.people.customer.transfer(office.people.provider.address, left - SLICE_WEI + 1)
    assert await carry_out(office) == ([], [near_end])
    assert "the credits are used up" in office.notices[0][2]


async def test_a_plan_that_is_carried_out_twice_buys_once(office: Office, near_end: int) -> None:
    await office.people.customer.approve(5 * SLICE_WEI)
    (wanted,) = await plan(office)
    assert isinstance(wanted, Slice)
    assert await buy_slice(office.session, wanted)
    assert not await buy_slice(office.session, wanted)
    assert (await office.job(near_end)).locked_wei == 200 * CREDIT + SLICE_WEI


async def test_a_change_since_the_plan_is_no_error(office: Office, near_end: int) -> None:
    await office.people.customer.approve(5 * SLICE_WEI)
    (wanted,) = await plan(office)
    assert isinstance(wanted, Slice)
    await office.people.customer.approve(0)
    assert not await buy_slice(office.session, wanted)
    await office.people.customer.approve(5 * SLICE_WEI)
    await office.people.provider.settle(near_end, JobStatus.FINISHED, 1)
    assert not await buy_slice(office.session, wanted)


async def test_a_cancel_request_ends_the_authority(office: Office, near_end: int) -> None:
    await office.people.customer.approve(5 * SLICE_WEI)
    (wanted,) = await plan(office)
    assert isinstance(wanted, Slice)
    await office.people.customer.cancel_job(near_end)
    assert await plan(office) == []
    await office.people.customer.set_delegate_spending(near_end, True)  # the contract accepts no top-up now
    assert await plan(office) == []
    assert not await buy_slice(office.session, wanted)


async def test_a_job_with_authority_from_the_start_is_known_before_it_runs(office: Office) -> None:
    customer, operator = office.people.customer, office.people.operator
    job_id = await customer.request_job(DEFINITION, 200 * CREDIT, "short", delegate=True, approve_first=200 * CREDIT)
    await customer.approve(5 * SLICE_WEI)
    await operator.meta_schedule(job_id, office.people.provider.address)
    assert await carry_out(office) == ([], [])  # no provider has claimed it
    await office.people.provider.claim_next()
    assert await carry_out(office) == ([], [])  # its time has just begun
    assert (await office.job(job_id)).granted_minutes == BOUGHT_MINUTES


def _transactions(office: Office) -> int:
    return int(office.grid.anvil.call("eth_getTransactionCount", office.people.operator.address, "latest"), 16)
