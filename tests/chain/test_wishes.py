"""Wishes on a real chain: each form of a request keeps them, and the contract holds assignments to them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deepgrid.chain.batches import Request
from deepgrid.chain.node.values import coded_wishes, job_of, wishes_of
from deepgrid.errors import ContractError, InputError
from deepgrid.lifecycle.job import Job, Prefer, Wishes
from deepgrid.lifecycle.states import JobStatus
from tests.chain.grid import CREDIT, DEFINITION, RATE, Grid, People

LOCKED = 200 * CREDIT
ASKED = Wishes(max_rate_wei=RATE - 1, min_minutes=3, give_up_at=0, prefer=Prefer.START)


async def _request(people: People, wishes: Wishes) -> int:
    return await people.customer.request_job(DEFINITION, LOCKED, "a job", wishes=wishes, approve_first=LOCKED)


async def test_a_job_has_the_wishes_of_its_request(people: People) -> None:
    single = await _request(people, ASKED)
    plain = await people.request()
    await people.customer.approve(3 * LOCKED)
    batch = [
        Request(DEFINITION, LOCKED, "b", wishes=one) for one in (ASKED, Wishes(), replace(ASKED, give_up_at=2**40 - 1))
    ]
    ids = await people.customer.request_jobs(batch)
    found = [job.wishes for job in await people.chain.jobs([single, plain, *ids])]
    assert found == [ASKED, Wishes(), ASKED, Wishes(), replace(ASKED, give_up_at=2**40 - 1)]
    definitions = {job.definition for job in await people.chain.jobs([single, *ids])}
    assert definitions == {DEFINITION}


async def test_the_ceiling_binds_alone_and_in_a_batch(people: People) -> None:
    dear, fair = await _request(people, ASKED), await _request(people, replace(ASKED, max_rate_wei=RATE))
    with pytest.raises(ContractError, match=r"14.6 credits per minute; its customer pays at most 14.59") as refused:
        await people.operator.meta_schedule(dear, people.provider.address)
    assert refused.value.name == "RateAboveCeiling"
    skipped = await people.operator.meta_schedule_jobs([(one, people.provider.address) for one in (dear, fair)])
    assert [(one.job_id, one.reason.name) for one in skipped] == [(dear, "RateAboveCeiling")]
    assert [job.status for job in await people.chain.jobs([dear, fair])] == [
        JobStatus.PENDING,
        JobStatus.META_SCHEDULED,
    ]


async def test_any_account_gives_a_job_up_in_time(people: People, grid: Grid) -> None:
    end = await people.chain.now() + 600
    job_id = await _request(people, Wishes(give_up_at=end))
    other = await people.request()
    early = await people.provider.give_up_jobs([job_id, other])
    assert [(one.job_id, one.reason.name) for one in early] == [(job_id, "NotGivenUp"), (other, "NotGivenUp")]
    assert "can be given up from unix second" in early[0].reason.message
    before = await people.chain.balance(people.customer.address)
    grid.anvil.pass_time(601)
    with pytest.raises(ContractError, match="gave it up") as late:
        await people.operator.meta_schedule(job_id, people.provider.address)
    assert late.value.name == "JobGivenUp"
    unknown = await people.chain.job_count() + 1
    skipped = await people.provider.give_up_jobs([other, job_id, unknown])
    assert [(one.job_id, one.reason.name) for one in skipped] == [(other, "NotGivenUp"), (unknown, "InvalidJob")]
    job = await people.chain.job(job_id)
    assert (job.status, job.has_cancel_request, job.final_cost_wei) == (JobStatus.CANCELLED, False, 0)
    assert await people.chain.balance(people.customer.address) == before + LOCKED


async def _pending(people: People, first: int, how_many: int) -> list[Job]:
    """Return the pending jobs among the `how_many` jobs from number `first` on."""
    return list(map(job_of, *await people.chain._read("MetaScheduler", "pendingJobs", first, how_many)))


async def test_pages_of_pending_jobs_have_all_of_them(people: People) -> None:
    first = await _request(people, ASKED)
    second, third = await people.assigned(), await people.request()
    count = await people.chain.job_count()
    found = await _pending(people, first, count)
    assert [job.id for job in found if job.id in (first, second, third)] == [first, third]
    assert found[0] == await people.chain.job(first)
    assert await _pending(people, count + 1, 10) == []


def test_wishes_are_coded_exactly() -> None:
    assert coded_wishes(Wishes()) == (0, 0, 0, 0, 0, False), "no wishes take no space"
    fields = ("maxRatePerMinute", "minMinutes", "giveUpAt", "prefer", "afterJob", "afterAny")
    for one in (Wishes(), ASKED, Wishes(2**96 - 1, 2**32 - 1, 2**40 - 1, Prefer.SPEED, 2**32 - 1, True)):
        assert wishes_of(dict(zip(fields, coded_wishes(one), strict=True))) == one
    assert wishes_of({**dict.fromkeys(fields, 0), "prefer": 200}) == Wishes(), "later preferences count as none"


@pytest.mark.parametrize(
    "wrong", [Wishes(max_rate_wei=2**96), Wishes(min_minutes=2**32), Wishes(give_up_at=-1), Wishes(after_job=2**32)]
)
def test_wishes_that_do_not_fit_are_refused(wrong: Wishes) -> None:
    with pytest.raises(InputError, match="is out of range"):
        coded_wishes(wrong)
