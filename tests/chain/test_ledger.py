"""The chain's side of the books from real contracts: every wei has a purpose, and every period has its entries."""

from __future__ import annotations

from deepgrid.billing.entries import Ledger, Purpose, Span
from deepgrid.billing.reconcile import reconcile
from deepgrid.chain.batches import Request
from deepgrid.chain.client import Chain
from deepgrid.chain.job_trail import read_trails
from deepgrid.chain.ledger import LedgerSettings, read_ledger, read_older_strays
from deepgrid.lifecycle.states import JobStatus
from tests.chain.grid import CREDIT, DEFINITION, RATE, Grid, People

LOCKED = 200 * CREDIT
FOR_EVER = 2**40


async def ledger_of(chain: Chain, since: int, until: int = FOR_EVER) -> Ledger:
    return await read_ledger(chain, Span(since, until))


def moved(ledger: Ledger, job_id: int | None) -> list[tuple[Purpose, int]]:
    return [(one.purpose, one.wei) for one in ledger.transfers if one.job_id == job_id]


async def test_every_transfer_has_its_purpose(people: People) -> None:
    since = await people.chain.now()
    paid_job = await people.running()
    await people.customer.top_up(paid_job, 7 * CREDIT, approve_first=7 * CREDIT)
    await people.provider.settle(paid_job, JobStatus.FINISHED, 1)
    cancelled = await people.request()
    await people.customer.cancel_job(cancelled)
    hot = await people.assigned()
    ledger = await ledger_of(people.chain, since)

    paid, cut = RATE * 80 // 100, RATE * 20 // 100
    assert moved(ledger, paid_job) == [
        (Purpose.DEPOSIT, LOCKED), (Purpose.TOP_UP, 7 * CREDIT), (Purpose.PAID, paid),
        (Purpose.REFUND, LOCKED + 7 * CREDIT - RATE),
    ]  # fmt: skip
    assert moved(ledger, cancelled) == [(Purpose.DEPOSIT, LOCKED), (Purpose.REFUND, LOCKED)]
    assert moved(ledger, hot) == [(Purpose.DEPOSIT, LOCKED)]
    settled = {one.job_id: one for one in ledger.settlements}
    assert (settled[paid_job].paid_wei, settled[paid_job].cut_wei, settled[paid_job].billed_minutes) == (paid, cut, 1)
    assert {paid_job, cancelled, hot} <= set(ledger.jobs) & set(ledger.requested)
    (claim,) = [one for one in ledger.claims if one.job_id == paid_job]
    assert (claim.provider, claim.at) == (people.provider.address, ledger.jobs[paid_job].claimed_at)


async def test_a_batch_of_requests_has_a_deposit_per_job(people: People) -> None:
    since = await people.chain.now()
    await people.customer.approve(6 * LOCKED)
    wanted = [Request(DEFINITION, LOCKED * share, "of a batch") for share in (1, 2, 3)]
    ids = await people.customer.request_jobs(wanted)
    await people.operator.meta_schedule(ids[1], people.provider.address)
    await people.provider.claim_next()
    await people.customer.top_up(ids[1], 7 * CREDIT, approve_first=7 * CREDIT)
    ledger = await ledger_of(people.chain, since)
    assert moved(ledger, ids[0]) == [(Purpose.DEPOSIT, LOCKED)]
    assert moved(ledger, ids[1]) == [(Purpose.DEPOSIT, 2 * LOCKED), (Purpose.TOP_UP, 7 * CREDIT)]
    assert moved(ledger, ids[2]) == [(Purpose.DEPOSIT, 3 * LOCKED)]
    result = reconcile("grid", ledger, Span(since, FOR_EVER))
    assert not [one for one in result.differences if one.job_id in ids], result.message
    trails = await read_trails(people.chain, await people.chain.jobs(ids[1:]))
    assert [trail.entries[0].wei for trail in trails.values()] == [2 * LOCKED, 3 * LOCKED]


async def test_the_contract_holds_deposits_and_cut(people: People) -> None:
    await people.running()
    everything = await ledger_of(people.chain, 0)
    assert everything.first_block <= people.chain.book.first_block
    hot = sum(job.held_wei for job in everything.jobs.values())
    strays = sum(one.wei for one in everything.transfers if one.purpose is Purpose.STRAY)
    assert everything.balance_wei == hot + everything.platform_cut_wei + strays


async def test_credits_that_came_back_before_the_end_have_their_purpose(grid: Grid, people: People) -> None:
    since, job_id = await people.chain.now(), await people.running()
    await people.customer.cancel_job(job_id)
    grid.anvil.pass_time(60 * (await people.chain.constants()).claim_timeout_minutes)
    await people.customer.cancel_job(job_id)
    ledger = await ledger_of(people.chain, since)
    released = ledger.jobs[job_id].released_wei
    assert moved(ledger, job_id) == [(Purpose.DEPOSIT, LOCKED), (Purpose.RELEASE, released)]
    await people.provider.settle(job_id, JobStatus.CANCELLED, 0)
    books = reconcile("grid", await ledger_of(people.chain, 0), Span(0, FOR_EVER))
    assert [one for one in books.differences if one.job_id == job_id] == []
    assert books.imbalances == ()


async def test_a_period_excludes_later_transfers(grid: Grid, people: People) -> None:
    before = await people.running()
    grid.anvil.pass_time(100)
    after = await people.running()
    middle = (await people.chain.job(after)).submitted_at
    await people.provider.settle(before, JobStatus.FINISHED, 1)
    early = await ledger_of(people.chain, middle - 50, middle)
    assert (before in early.requested, after in early.requested) == (False, True)
    assert not early.in_period(early.requested[after])
    (settlement,) = [one for one in early.settlements if one.job_id == before]
    assert not early.in_period(settlement.block)  # it is included, because the job was open at the period's end
    late = await ledger_of(people.chain, middle)
    assert late.in_period(settlement.block)
    assert late.in_period(late.requested[after])
    assert late.last_block == late.head_block


async def test_a_future_period_is_empty(people: People) -> None:
    job_id = await people.running()
    ledger = await read_ledger(people.chain, Span(FOR_EVER, FOR_EVER + 1), [job_id])
    assert (ledger.settlements, ledger.claims, ledger.transfers) == ((), (), ())
    assert list(ledger.jobs) == [job_id]
    assert not ledger.in_period(ledger.head_block)


async def test_a_gift_to_the_contract_belongs_to_no_job(people: People) -> None:
    since = await people.chain.now()
    await people.customer.transfer(people.chain.book.meta_scheduler, 5)
    ledger = await ledger_of(people.chain, since)
    assert (Purpose.STRAY, 5) in moved(ledger, None)
    later = await read_ledger(people.chain, Span(FOR_EVER, FOR_EVER + 1))
    assert await read_older_strays(people.chain, later) >= 5


async def test_the_ledger_lists_refused_jobs(people: People) -> None:
    since = await people.chain.now()
    job_id = await people.assigned()
    await people.provider.refuse_job(job_id)
    ledger = await ledger_of(people.chain, since)
    assert [one.provider for one in ledger.given_back if one.job_id == job_id] == [people.provider.address]


async def test_short_pages_give_the_same_books(people: People) -> None:
    since = await people.chain.now()
    for _ in range(2):
        job_id = await people.running()
        await people.provider.settle(job_id, JobStatus.FAILED, 1)
    span, short = Span(since, FOR_EVER), LedgerSettings(blocks_per_page=3, items_per_batch=2)
    assert await read_ledger(people.chain, span, settings=short) == await read_ledger(people.chain, span)


async def test_the_platforms_withdrawal_differs_from_payments(people: People) -> None:
    since = await people.chain.now()
    job_id = await people.running()
    await people.provider.settle(job_id, JobStatus.FINISHED, 1)
    await people.operator._send("MetaScheduler", "withdrawAdmin", 3)
    ledger = await ledger_of(people.chain, since)
    assert (Purpose.WITHDRAWAL, 3) in moved(ledger, None)


async def test_a_provider_reads_its_own_jobs_only(people: People) -> None:
    since = await people.chain.now()
    mine = await people.running()
    waiting = await people.request()
    own = await read_ledger(people.chain, Span(since, FOR_EVER), provider=people.provider.address)
    assert mine in own.jobs
    assert waiting not in own.jobs
    assert waiting in own.requested
    await people.customer.cancel_job(waiting)
