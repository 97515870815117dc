"""Jobs are taken back from providers that do not act: not before their time is over, and with a notice."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from deepgrid.lifecycle.states import JobStatus
from deepgrid.operator.expiry import read_overdue, take_back
from deepgrid.scheduling.expiry import TakeBack
from tests.chain.grid import CREDIT, HARDWARE, LABELS, PRICES, approve_waiting
from tests.operator.office import HOUR_S, MINUTE_S, Office

S = JobStatus


async def overdue(office: Office, *, end_running_of_banned: bool = False) -> list[TakeBack]:
    await office.catch_up()
    return await read_overdue(office.session, 24, end_running_of_banned)


async def timed_out(office: Office) -> int:
    return (await office.people.chain.track_record(office.people.provider.address)).timed_out


async def test_an_unclaimed_job_comes_back_after_its_time_and_stays_away_from_that_provider(office: Office) -> None:
    job_id = await office.people.assigned()
    assert await overdue(office) == []
    office.pass_time(10 * MINUTE_S)
    (taken,) = await overdue(office)
    assert await take_back(office.session, taken)
    provider = office.people.provider.address
    job = await office.job(job_id)
    assert (job.status, job.last_refuser) == (S.PENDING, provider)
    assert office.notices == [(job_id, "expired", taken.reason)]
    assert "did not claim it within 10 min" in taken.reason
    await office.catch_up()
    (pending,) = await office.session.chain.jobs(office.session.index.pending())
    assert await office.session.refusals([pending]) == {job_id: {provider: taken.reason}}
    assert await overdue(office) == []


async def test_time_passes_on_a_chain_without_new_blocks(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some chains make a block for a transaction only. This job waited for one at a dead provider."""
    job_id = await office.people.assigned()
    now = await office.people.chain.now()
    monkeypatch.setattr("deepgrid.chain.node.node.time", SimpleNamespace(time=lambda: now + 10 * MINUTE_S))
    assert [one.job.id for one in await overdue(office)] == [job_id]


async def test_a_second_provider_that_lets_a_job_time_out_is_left_out_too(office: Office) -> None:
    first, second = office.people.provider, office.people.customer  # any account that registers is a provider
    await second.register(HARDWARE, PRICES, LABELS)
    await approve_waiting(office.people.operator, second.address)
    job_id = await office.people.assigned()
    for _ in range(2):
        office.pass_time(10 * MINUTE_S)
        (taken,) = await overdue(office)
        assert await take_back(office.session, taken)
        await office.catch_up()
        (pending,) = await office.session.chain.jobs(office.session.index.pending())
        refusals = await office.session.refusals([pending])
        if set(refusals[job_id]) == {first.address}:
            await office.people.operator.meta_schedule(job_id, second.address)
    assert set(refusals[job_id]) == {first.address, second.address}


async def test_a_job_that_was_claimed_meanwhile_is_left_alone(office: Office) -> None:
    job_id = await office.people.assigned()
    office.pass_time(10 * MINUTE_S)
    (taken,) = await overdue(office)
    await office.people.provider.claim_next()
    assert not await take_back(office.session, taken)
    assert (await office.job(job_id)).status is S.SCHEDULED
    assert (office.notices, await timed_out(office)) == ([], 0)


async def test_a_job_that_was_settled_meanwhile_is_left_alone(office: Office) -> None:
    job_id = await office.people.running()
    await office.people.operator.ban_provider(office.people.provider.address)
    (taken,) = await overdue(office, end_running_of_banned=True)
    await office.people.provider.settle(job_id, S.FINISHED, 1)
    assert not await take_back(office.session, taken)
    assert (await office.job(job_id)).status is S.FINISHED


async def test_two_operators_at_once_take_a_job_back_once(office: Office) -> None:
    await office.people.assigned()
    office.pass_time(10 * MINUTE_S)
    (taken,) = await overdue(office)
    assert await take_back(office.session, taken)
    assert not await take_back(office.session, taken)
    assert await timed_out(office) == 1


async def test_a_claimed_job_is_left_to_its_provider_for_a_long_time(office: Office) -> None:
    job_id = await office.people.running()
    limit_s = (await office.job(job_id)).granted_minutes * MINUTE_S
    office.pass_time(limit_s + HOUR_S)
    assert await overdue(office) == []
    office.pass_time(23 * HOUR_S)
    (taken,) = await overdue(office)
    assert await take_back(office.session, taken)
    assert (await office.job(job_id)).status is S.PANICKED
    settled = await office.people.chain.settlement(job_id)
    assert settled is not None
    assert settled.refunded_wei == 200 * CREDIT


async def test_a_ban_frees_waiting_jobs_and_leaves_running_ones(office: Office) -> None:
    running = await office.people.running()
    claimed = await office.people.assigned()
    await office.people.provider.claim_next()
    await office.people.operator.ban_provider(office.people.provider.address)
    (taken,) = await overdue(office)
    assert (taken.job.id, taken.cluster) == (claimed, office.people.provider.address)
    assert await take_back(office.session, taken)
    assert (await office.job(claimed)).status is S.PENDING
    assert "barred from the grid" in office.notices[0][2]
    await office.people.provider.settle(running, S.FINISHED, 1)
    assert (await office.job(running)).status is S.FINISHED


async def test_the_operator_may_end_running_jobs_of_a_banned_provider_at_once(office: Office) -> None:
    job_id = await office.people.running()
    await office.people.operator.ban_provider(office.people.provider.address)
    (taken,) = await overdue(office, end_running_of_banned=True)
    assert await take_back(office.session, taken)
    job = await office.job(job_id)
    assert (job.status, job.returned_wei, job.last_error) == (S.PANICKED, 200 * CREDIT, taken.reason)


async def test_a_job_that_may_have_run_stays_a_day_after_its_cancel_request(office: Office) -> None:
    job_id = await office.people.running()
    await office.people.customer.cancel_job(job_id)
    await office.people.operator.ban_provider(office.people.provider.address)
    office.pass_time(23 * HOUR_S)
    assert await overdue(office) == []
    office.pass_time(HOUR_S)
    (taken,) = await overdue(office)
    assert await take_back(office.session, taken)
    assert (await office.job(job_id)).status is S.PANICKED


async def test_a_removed_provider_keeps_nothing(office: Office) -> None:
    job_id = await office.people.running()
    limit_s = (await office.job(job_id)).granted_minutes * MINUTE_S
    await office.people.operator.remove_provider(office.people.provider.address)
    assert await overdue(office) == []
    office.pass_time(limit_s + 24 * HOUR_S)
    (taken,) = await overdue(office)
    assert "has left the grid" in taken.reason
    assert await take_back(office.session, taken)
    assert (await office.job(job_id)).status is S.PANICKED
