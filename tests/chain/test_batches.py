"""Many jobs in one transaction: an item that lost a race is returned as skipped, the others are carried out."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from deepgrid.chain.batches import MOST_AT_ONCE, Report, Request, Skipped
from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.transaction import Fees, Outgoing
from deepgrid.errors import ContractError
from deepgrid.lifecycle.job import Label
from deepgrid.lifecycle.states import JobStatus
from tests.chain.grid import CREDIT, DEFINITION, Grid, People, gather_people

S = JobStatus
WHO = "0x" + "ab" * 20
UNKNOWN_JOB = 10**6


def _told(skipped: list[Skipped]) -> list[tuple[int, int, str]]:
    return [(one.index, one.job_id, one.reason.name) for one in skipped]


async def _requested(people: People, count: int, locked_wei: int = 200 * CREDIT) -> list[int]:
    await people.customer.approve(count * locked_wei)
    requests = [Request(DEFINITION, locked_wei, f"job {number}", number % 2 == 1) for number in range(count)]
    return await people.customer.request_jobs(requests)


async def _states(people: People, job_ids: list[int]) -> list[JobStatus]:
    return [job.status for job in await people.chain.jobs(job_ids)]


async def _sent(grid: Grid, people: People) -> list[int]:
    parties = (people.customer, people.operator, people.provider)
    return [int(grid.anvil.call("eth_getTransactionCount", one.address, "latest"), 16) for one in parties]


async def test_whole_lives_with_one_transaction_per_step(grid: Grid, people: People) -> None:
    before = await _sent(grid, people)
    ids = await _requested(people, 5)
    jobs = await people.chain.jobs(ids)
    assert [(job.name, job.delegate_spending) for job in jobs] == [(f"job {n}", n % 2 == 1) for n in range(5)]
    assert ids == list(range(ids[0], ids[0] + 5))
    assert await people.operator.meta_schedule_jobs([(job_id, people.provider.address) for job_id in ids]) == []
    claims = await people.provider.claim_next_jobs(3) + await people.provider.claim_next_jobs(100)
    assert [(one.job_id, one.granted_minutes, one.definition) for one in claims] == [(n, 13, DEFINITION) for n in ids]
    assert await people.provider.claim_next_jobs(100) == []
    assert await people.provider.report_jobs([Report(job_id, S.RUNNING, 0) for job_id in ids]) == []
    ends = [Report(job_id, S.FAILED, 1, f"error of {job_id}", 768) for job_id in ids]
    assert await people.provider.report_jobs(ends) == []
    done = await people.chain.jobs(ids)
    assert [(job.status, job.last_error, job.exit_status) for job in done] == [
        (S.FAILED, f"error of {job_id}", 768) for job_id in ids
    ]
    assert [after - one for one, after in zip(before, await _sent(grid, people), strict=True)] == [2, 1, 4]


async def test_items_that_lost_a_race_are_left_out_with_their_reason(people: People) -> None:
    ids = await _requested(people, 5)
    provider, operator = people.provider, people.operator
    await people.customer.cancel_job(ids[1])
    await operator.meta_schedule(ids[3], provider.address)
    wanted = [(job_id, provider.address) for job_id in ids[:4]]
    skipped = await operator.meta_schedule_jobs([*wanted, (ids[4], WHO)])
    assert _told(skipped) == [
        (1, ids[1], "JobHotStatusOnly"), (3, ids[3], "SameStatusError"), (4, ids[4], "ProviderNotJoined"),
    ]  # fmt: skip
    assert skipped[0].reason.args_by_name == {"current": S.CANCELLED}
    assert skipped[0].reason.message == "The job is over: it is cancelled."
    assert await _states(people, ids) == [
        S.META_SCHEDULED, S.CANCELLED, S.META_SCHEDULED, S.META_SCHEDULED, S.PENDING,
    ]  # fmt: skip
    claims = await provider.claim_next_jobs(100)
    assert sorted(one.job_id for one in claims) == [ids[0], ids[2], ids[3]]
    skipped = await provider.report_jobs([Report(job_id, S.RUNNING, 0) for job_id in ids])
    assert _told(skipped) == [(1, ids[1], "JobProviderOnly"), (4, ids[4], "JobProviderOnly")]


async def test_a_malformed_item_does_not_stop_the_other_items(people: People) -> None:
    """An unknown job makes the whole call revert. The client finds it and assigns all others."""
    ids = await _requested(people, 4)
    wanted = [*ids[:2], UNKNOWN_JOB, *ids[2:]]
    skipped = await people.operator.meta_schedule_jobs([(job_id, people.provider.address) for job_id in wanted])
    assert _told(skipped) == [(2, UNKNOWN_JOB, "InvalidJob")]
    assert set(await _states(people, ids)) == {S.META_SCHEDULED}


async def test_requests_are_all_or_none(people: People) -> None:
    count = await people.chain.job_count()
    await people.customer.approve(200 * CREDIT)
    with pytest.raises(ContractError) as refused:
        await people.customer.request_jobs([Request(DEFINITION, CREDIT * 100, "x"), Request(DEFINITION, 5, "few")])
    assert refused.value.name == "InsufficientFunds"
    assert await people.chain.job_count() == count


async def test_empty_batches_send_no_transaction(grid: Grid, people: People) -> None:
    before = await _sent(grid, people)
    assert await people.operator.meta_schedule_jobs([]) == []
    assert await people.provider.report_jobs([]) == []
    assert await _sent(grid, people) == before


async def test_large_batches_are_split_into_several_transactions(grid: Grid, people: People) -> None:
    count = MOST_AT_ONCE + 20
    await people.operator.mint(people.customer.address, count * 100 * CREDIT)
    ids = await _requested(people, count // 2, 100 * CREDIT) + await _requested(people, count // 2, 100 * CREDIT)
    before = await _sent(grid, people)
    await people.customer.cancel_job(ids[-1])
    wanted = [(job_id, people.provider.address) for job_id in ids]
    assert _told(await people.operator.meta_schedule_jobs(wanted)) == [(count - 1, ids[-1], "JobHotStatusOnly")]
    assert (await _sent(grid, people))[1] == before[1] + 2
    claims = await people.provider.claim_next_jobs(count)
    assert [one.job_id for one in claims] == ids[:-1]


async def test_a_job_that_is_queued_after_the_estimate_does_not_spoil_the_claim(
    grid: Grid, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The estimate saw one job, but there were twenty when the claim was mined. The claim once ran out of gas."""
    ids = await _requested(people, 20, 100 * CREDIT)
    await people.operator.meta_schedule(ids[0], people.provider.address)
    flight = people.provider.sender._flight
    send = flight.send

    async def late(outgoing: Outgoing, fees: Fees) -> None:
        assert outgoing.gas is not None
        await people.operator.meta_schedule_jobs([(job_id, people.provider.address) for job_id in ids[1:]])
        await send(outgoing, fees)

    monkeypatch.setattr(flight, "send", late)
    before = await _sent(grid, people)
    assert [one.job_id for one in await people.provider.claim_next_jobs(50)] == ids[:1]
    monkeypatch.undo()
    assert [one.job_id for one in await people.provider.claim_next_jobs(50)] == ids[1:]
    assert (await _sent(grid, people))[2] == before[2] + 2


async def test_huge_definitions_are_claimed_in_smaller_batches(own_grid: Grid) -> None:
    """A job may have 4 kB of labels; a hundred of them exceed the gas of one transaction."""
    async with await Chain.connect(own_grid.book) as chain:
        people = await gather_people(own_grid, chain, "h")
        labels = tuple(Label(f"key-{number}", "v" * 55) for number in range(60))
        definition = replace(DEFINITION, uses=labels)
        await people.operator.mint(people.customer.address, 100 * 200 * CREDIT)
        await people.customer.approve(100 * 200 * CREDIT)
        ids = await asyncio.gather(
            *(people.customer.request_jobs([Request(definition, 200 * CREDIT, "huge")] * 5) for _ in range(20))
        )
        wanted = [(job_id, people.provider.address) for few in ids for job_id in few]
        assert await people.operator.meta_schedule_jobs(wanted) == []
        assert {job.definition for job in await people.chain.jobs([job_id for job_id, _ in wanted])} == {definition}
        sizes: list[int] = []
        while claims := await people.provider.claim_next_jobs(100):
            assert {one.definition for one in claims} == {definition}
            sizes.append(len(claims))
        assert sum(sizes) == 100
        assert 1 < len(sizes) < 100, sizes
