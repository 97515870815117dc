"""Rounds of the meta-scheduler on a real chain: assignments, notices, and kills in between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from deepgrid.chain.batches import Request, Skipped
from deepgrid.errors import ServiceError
from deepgrid.lifecycle.states import JobStatus
from deepgrid.operator import rounds
from deepgrid.operator.session import OperatorSession, follow_jobs
from deepgrid.scheduling.market import Assignment, Round, SchedulerSettings, Usage, Waiting
from deepgrid.services.messages import MAX_NOTICES_AT_ONCE
from tests.chain.grid import CREDIT, DEFINITION
from tests.operator.office import Office
from tests.waiting import until

S = JobStatus
RUNS = replace(DEFINITION, uses=(), affinity=(), gpus=0, ntasks=1, cpus_per_task=1)
HUGE = replace(RUNS, ntasks=1000)
ROOM = 10.0  # machines are shared; the limit is 100 ms of the loop's own CPU time
LONGEST_S = 0.1


async def requested(office: Office, *definitions: object) -> list[int]:
    await office.people.customer.approve(len(definitions) * 200 * CREDIT)
    wanted = [Request(one, 200 * CREDIT, "a job") for one in definitions]  # type: ignore[arg-type]
    ids = await office.people.customer.request_jobs(wanted)
    await office.catch_up()
    return ids


async def one_round(session: OperatorSession) -> int:
    """Do what the flow does, without Prefect."""
    seen = await rounds.read_market(session)
    decision = await rounds.decide(session, seen)
    assigned = await rounds.assign(session, decision)
    ended = await rounds.end_jobs(session, seen)
    await rounds.tell(session, decision, assigned, len(ended))
    return assigned


def told(office: Office) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for job_id, kind, _ in office.notices:
        found.setdefault(job_id, []).append(kind)
    return found


async def test_a_round_assigns_what_fits_and_says_why_the_rest_waits(office: Office) -> None:
    fits, waits = await requested(office, RUNS, HUGE)
    assert await one_round(office.session) == 1
    assert (await office.job(fits)).provider == office.people.provider.address
    assert (await office.job(waits)).status is S.PENDING
    assert told(office) == {fits: ["assigned"], waits: ["waiting"]}
    await office.catch_up()
    assert await one_round(office.session) == 0
    assert told(office) == {fits: ["assigned"], waits: ["waiting"]}, "nothing is said twice"
    (last, *_) = office.session.store.rounds(5)
    assert (last["pending"], last["assigned"], last["waiting"]) == (1, 0, 1)


async def test_a_round_that_is_killed_after_its_transaction_still_tells_the_reason(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id, lost = await requested(office, RUNS, RUNS)
    schedule = office.session.writer.meta_schedule_jobs

    async def killed(assignments: Sequence[tuple[int, str]]) -> list[Skipped]:
        await schedule(assignments[:1])
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(office.session.writer, "meta_schedule_jobs", killed)
        with pytest.raises(KeyboardInterrupt):
            await one_round(office.session)
    assert office.notices == []
    await office.catch_up()
    posting = asyncio.create_task(office.session.notices.serve())
    await rounds.read_market(office.session)  # the next round may have nothing else to do
    await until(lambda: told(office) == {job_id: ["assigned"]})
    posting.cancel()
    assert await one_round(office.session) == 1
    assert told(office) == {job_id: ["assigned"], lost: ["assigned"]}


async def test_two_operators_at_once_assign_each_job_once(office: Office) -> None:
    ids = await requested(office, RUNS, RUNS, RUNS)
    both = [await rounds.decide(office.session, await rounds.read_market(office.session)) for _ in range(2)]
    assert [await rounds.assign(office.session, one) for one in both] == [3, 0]
    assert {(await office.job(job_id)).status for job_id in ids} == {S.META_SCHEDULED}


async def test_a_job_that_was_given_back_too_often_ends_with_a_refund_and_a_reason(office: Office) -> None:
    office.session.settings = replace(office.session.settings, scheduler=SchedulerSettings(max_tries=1))
    (job_id,) = await requested(office, RUNS)
    before = await office.people.chain.balance(office.people.customer.address)
    await one_round(office.session)
    await office.catch_up()
    await office.people.provider.refuse_job(job_id)
    await office.catch_up()
    await one_round(office.session)
    job = await office.job(job_id)
    assert job.status is S.PANICKED
    assert "clusters gave it back 1 times" in job.last_error
    assert await office.people.chain.balance(office.people.customer.address) == before + 200 * CREDIT
    assert told(office)[job_id] == ["assigned", "ended"]


@asynccontextmanager
async def followed(office: Office) -> AsyncIterator[None]:
    """Follow the chain as the operator's process does. The context begins when it has seen the providers."""

    async def follow() -> None:
        async for _ in follow_jobs(office.session):
            pass

    task = asyncio.create_task(follow())
    office.session.watched = await office.session.chain.providers_and_records()
    try:
        yield
    finally:
        office.session.watched = None
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_rounds_read_no_job_and_no_provider_again(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round once read 10,000 pending jobs and 1,000 providers."""
    async with followed(office):
        await office.people.customer.approve(4 * 200 * CREDIT)
        ids = await office.people.customer.request_jobs([Request(RUNS, 200 * CREDIT, "a job")] * 4)
        await until(lambda: len(office.session.memory.hot) == len(ids))
        session = office.session
        with monkeypatch.context() as patched:
            for read in ("jobs", "providers_and_records"):
                patched.setattr(session.chain, read, None)
            seen = await rounds.read_market(session)
        assert [job.id for job in seen.pending] == ids
        decision = await rounds.decide(session, seen)
        assert await rounds.assign(session, decision) == len(ids)
        assert (await rounds.read_market(session)).pending == [], "the next round knows what this one assigned"
    assert office.session.followed is None


async def test_notices_outlast_an_outage_of_the_services_and_a_restart(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = office.session

    async def away(notices: object) -> None:
        raise ServiceError("The services do not answer.")

    notices = [(job_id, "waiting", f"reason {job_id}") for job_id in range(1, 2 * MAX_NOTICES_AT_ONCE + 2)]
    with monkeypatch.context() as patched:
        patched.setattr(session.services, "post_notices", away)
        session.notices.add(notices)
        assert not await session.notices.post()
    again = OperatorSession(session.settings, session.chain, session.sender.wallet)
    sizes: list[int] = []

    async def post(batch: list[tuple[int, str, str]]) -> None:
        sizes.append(len(batch))
        office.notices.extend(batch)

    monkeypatch.setattr(again.services, "post_notices", post)
    assert await again.notices.post()
    assert office.notices == notices
    assert sizes == [MAX_NOTICES_AT_ONCE, MAX_NOTICES_AT_ONCE, 1]
    again.close()
    await again.services.close()


async def test_a_large_round_never_holds_the_event_loop(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """10,000 notices once blocked the loop for minutes: no keep-alive, no SIGTERM."""
    (job_id,) = await requested(office, RUNS)
    pattern = await office.job(job_id)
    jobs = [replace(pattern, id=number) for number in range(1, 10_001)]
    assignments = [Assignment(one.id, office.people.provider.address, "cheapest", 1) for one in jobs[:5000]]
    found = Round(
        assignments, [Waiting(one.id, "3 clusters are full", one.id, 7, 0.4, 10**9, "a") for one in jobs[5000:]], {}
    )
    decision = rounds.Decision(rounds.Snapshot(0, jobs, [], {}), found, Usage(), 0.0)
    longest = 0.0

    async def beat() -> None:
        nonlocal longest
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - before)

    async def mined(*_: object, **__: object) -> object:
        await asyncio.sleep(0)
        return type("Receipt", (), {"logs": []})

    monkeypatch.setattr(office.session.writer.sender, "send", mined)
    heart = asyncio.create_task(beat())
    await rounds.assign(office.session, decision)
    await rounds.tell(office.session, decision, len(assignments))
    heart.cancel()
    assert len(office.notices) == len(jobs)
    assert longest < ROOM * LONGEST_S
