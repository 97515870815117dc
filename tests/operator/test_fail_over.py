"""A job that one cluster does not run goes to another one, a bounded number of times.

The customer's wishes are kept.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from deepgrid.chain.batches import Request
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.writer import Writer
from deepgrid.lifecycle.job import Prices, Wishes
from deepgrid.lifecycle.states import JobStatus
from deepgrid.operator import rounds
from deepgrid.operator.expiry import read_overdue, take_back
from deepgrid.operator.rounds import Decision, Snapshot
from deepgrid.scheduling.market import SchedulerSettings
from tests.chain.grid import CREDIT, DEFINITION, HARDWARE, LABELS, PRICES, approve_waiting
from tests.operator.office import MINUTE_S, Office

S = JobStatus
RUNS = replace(DEFINITION, uses=(), affinity=(), gpus=0, ntasks=1, cpus_per_task=1, mem_per_cpu_mb=1000)
RATE = CREDIT * 11 // 10  # of RUNS at the first provider
LOCKED = 200 * CREDIT


@pytest.fixture
async def others(office: Office) -> AsyncIterator[list[Writer]]:
    """Three more providers, each more expensive than the previous one."""
    found: list[Writer] = []
    for number in range(3):
        writer = Writer(office.people.chain, Sender(office.people.chain, office.grid.new_key(f"p-{number}")))
        await writer.register(HARDWARE, dearer(number + 2), LABELS)
        await approve_waiting(office.people.operator, writer.address)
        found.append(writer)
    yield found
    for writer in found:
        await writer.sender.close()


def dearer(times: int) -> Prices:
    return replace(PRICES, cpu_wei_per_minute=times * PRICES.cpu_wei_per_minute)


async def requested(office: Office, *wishes: Wishes) -> list[int]:
    await office.people.customer.approve(len(wishes) * LOCKED)
    wanted = [Request(RUNS, LOCKED, "a job", wishes=one) for one in wishes]
    return await office.people.customer.request_jobs(wanted)


async def one_round(office: Office) -> Decision:
    """Do what the flow does, without Prefect."""
    await office.catch_up()
    seen = await rounds.read_market(office.session)
    return await finish(office, seen)


async def finish(office: Office, seen: Snapshot) -> Decision:
    decision = await rounds.decide(office.session, seen)
    assigned = await rounds.assign(office.session, decision)
    ended = await rounds.end_jobs(office.session, seen)
    await rounds.tell(office.session, decision, assigned, len(ended))
    return decision


async def expire(office: Office) -> None:
    await office.catch_up()
    for one in await read_overdue(office.session, 24, False):
        assert await take_back(office.session, one)


async def at(office: Office, job_id: int) -> str | None:
    return (await office.job(job_id)).provider


async def test_a_job_goes_on_after_a_refusal_a_timeout_a_ban_and_a_removal(
    office: Office, others: list[Writer]
) -> None:
    scheduler = SchedulerSettings(max_tries=4)
    office.session.settings = replace(office.session.settings, scheduler=scheduler)
    first, operator = office.people.provider, office.people.operator
    before = await office.people.chain.balance(office.people.customer.address)
    (job_id,) = await requested(office, Wishes())

    await one_round(office)
    assert await at(office, job_id) == first.address, "the cheapest one"
    await first.refuse_job(job_id)
    await one_round(office)
    second = await at(office, job_id)
    office.pass_time(10 * MINUTE_S)  # it claims nothing
    await expire(office)
    await one_round(office)
    third = await at(office, job_id)
    (claimer,) = [one for one in others if one.address == third]
    await claimer.claim_next()
    await operator.ban_provider(claimer.address)
    await expire(office)
    await one_round(office)
    fourth = await at(office, job_id)
    assert {first.address, second, third, fourth} == {first.address, *(one.address for one in others)}
    (claimer,) = [one for one in others if one.address == fourth]
    await claimer.claim_next()
    await operator.remove_provider(claimer.address)
    await expire(office)
    await one_round(office)
    job = await office.job(job_id)
    assert job.status is S.PANICKED
    assert "clusters gave it back 4 times, the limit; the last one was" in job.last_error
    assert "has left the grid" in job.last_error
    assert await office.people.chain.balance(office.people.customer.address) == before
    kinds = [kind for _, kind, _ in office.notices]
    assert kinds == ["assigned", "assigned", "expired", "assigned", "expired", "assigned", "expired", "ended"]


async def test_a_job_that_waits_too_long_is_cancelled_and_refunded(office: Office) -> None:
    customer, chain = office.people.customer.address, office.people.chain
    before, end = await chain.balance(customer), await chain.now() + 10 * MINUTE_S
    patient = Wishes(max_rate_wei=1)
    *given_up, waits = await requested(office, *[replace(patient, give_up_at=end)] * 3, patient)
    decision = await one_round(office)
    assert [one.job_id for one in decision.found.waiting] == [*given_up, waits]
    assert office.session.next_round_at is not None, "a round is due after the time to give up"
    office.pass_time(16 * MINUTE_S)
    await one_round(office)
    assert [(await office.job(job_id)).status for job_id in given_up] == [S.CANCELLED] * 3
    assert (await office.job(waits)).status is S.PENDING
    assert await chain.balance(customer) == before - LOCKED
    ended = [(job_id, text) for job_id, kind, text in office.notices if kind == "ended"]
    assert [job_id for job_id, _ in ended] == given_up
    assert "cancelled with a full refund" in ended[0][1]
    await one_round(office)
    assert office.session.next_round_at is None


async def test_a_job_that_ends_meanwhile_is_not_ended_twice(office: Office) -> None:
    end = await office.people.chain.now() + 10 * MINUTE_S
    gone, kept = await requested(office, *[Wishes(max_rate_wei=1, give_up_at=end)] * 2)
    office.pass_time(16 * MINUTE_S)
    await office.catch_up()
    seen = await rounds.read_market(office.session)
    await office.people.customer.cancel_job(gone)
    decision = await finish(office, seen)
    assert [job.id for job in decision.snapshot.given_up] == [gone, kept]
    assert [(job_id, kind) for job_id, kind, _ in office.notices] == [(kept, "ended")]


async def test_the_ceiling_of_the_price_binds_even_if_prices_rise_during_a_round(office: Office) -> None:
    cheap, capped, free = await requested(office, Wishes(max_rate_wei=RATE - 1), Wishes(max_rate_wei=RATE), Wishes())
    await office.catch_up()
    seen = await rounds.read_market(office.session)
    await office.people.provider.register(HARDWARE, dearer(2), LABELS)
    await approve_waiting(office.people.operator, office.people.provider.address)
    decision = await finish(office, seen)
    (waiting,) = decision.found.waiting
    assert (waiting.job_id, "above the ceiling" in waiting.reason) == (cheap, True)
    assert [(await office.job(one)).status for one in (capped, free)] == [S.PENDING, S.PENDING]
    assert [(job_id, kind) for job_id, kind, _ in office.notices] == [(cheap, "waiting")]
    await one_round(office)
    reasons = {job_id: text for job_id, kind, text in office.notices if kind == "waiting"}
    assert "above the ceiling of 1.1 credits per minute" in reasons[capped]
    await office.people.provider.register(HARDWARE, PRICES, LABELS)
    await approve_waiting(office.people.operator, office.people.provider.address)
    await one_round(office)
    assert [(await office.job(one)).status for one in (cheap, capped)] == [S.PENDING, S.META_SCHEDULED]
