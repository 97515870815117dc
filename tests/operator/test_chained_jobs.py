"""Jobs that wait for an earlier one: not proposed before, assigned after it, and ended with a refund if it failed."""

from __future__ import annotations

import asyncio
import itertools
import signal
import sys
from pathlib import Path

import pytest

from deepgrid.chain.batches import Request
from deepgrid.chain.offers import proposal_hash
from deepgrid.errors import ContractError, NotFound
from deepgrid.lifecycle.job import JobDefinition, Wishes
from deepgrid.lifecycle.states import JobStatus
from deepgrid.operator import rounds
from deepgrid.operator.chained_jobs import doomed_until
from deepgrid.operator.session import operator_session
from tests.chain.grid import CREDIT, RATE, pass_a_second
from tests.operator import killed_rounds
from tests.operator.office import Office

RUNS = JobDefinition(0, 100, 1, 1, "f", 4)


async def one_round(office: Office) -> tuple[int, list[int | None]]:
    """Run a round. Return the count of jobs that it assigned, and the ids of the jobs that it ended."""
    await office.catch_up()
    seen = await rounds.read_market(office.session)
    decision = await rounds.decide(office.session, seen)
    assigned = await rounds.assign(office.session, decision)
    return assigned, [one.job_id for one in await rounds.end_jobs(office.session, seen)]


async def requested(office: Office, *wishes: Wishes) -> list[int]:
    await office.people.customer.approve(len(wishes) * 200 * CREDIT)
    wanted = [Request(RUNS, 200 * CREDIT, "a job", False, one) for one in wishes]
    return await office.people.customer.request_jobs(wanted)


async def status(office: Office, job_id: int) -> JobStatus:
    return (await office.job(job_id)).status


async def test_a_chain_goes_on_when_the_earlier_job_has_finished(office: Office) -> None:
    first = await office.people.claimed()
    then, later = await requested(office, Wishes(RATE, after_job=first), Wishes(RATE, after_job=first, after_any=True))
    assert await one_round(office) == (0, [])
    assert (await office.job(later)).wishes == Wishes(RATE, after_job=first, after_any=True)
    with pytest.raises(ContractError, match=f"waits for job {first}") as refused:
        await office.people.operator.meta_schedule(then, office.people.provider.address)
    assert refused.value.name == "JobWaits"
    await office.people.provider.set_running(first, 0)
    await office.people.provider.settle(first, JobStatus.FINISHED, 1)
    assert await one_round(office) == (2, [])
    assert await status(office, then) is JobStatus.META_SCHEDULED


async def test_a_failure_ends_a_whole_chain_with_its_deposits(office: Office) -> None:
    first = await office.people.claimed()
    (second,) = await requested(office, Wishes(RATE, after_job=first))
    (third,) = await requested(office, Wishes(RATE, after_job=second))
    (last,) = await requested(office, Wishes(RATE, after_job=third, after_any=True))
    await office.people.provider.refuse_job(first)
    assert await one_round(office) == (0, [])  # pending again, and this provider has just refused it
    await office.people.customer.cancel_job(first)
    before = await office.people.chain.balance(office.people.customer.address)
    assert await one_round(office) == (0, [second, third])  # in one transaction
    assert await one_round(office) == (1, [])
    assert await office.people.chain.balance(office.people.customer.address) == before + 400 * CREDIT
    assert await status(office, last) is JobStatus.META_SCHEDULED
    await office.session.notices.post()
    text = f"it waited for job {first} to finish, which did not; it is cancelled with a full refund"
    assert (second, "ended", text) in office.notices


async def test_jobs_behind_a_failed_one_wait_for_full_five_minutes(office: Office) -> None:
    """The contract lets anyone end them at once. The operator would pay for each, as often as the customer likes."""
    first = await office.people.request()
    await office.people.customer.cancel_job(first)
    await pass_a_second(office.people.chain)
    (second,) = await requested(office, Wishes(RATE, after_job=first))
    (third,) = await requested(office, Wishes(RATE, after_job=second))
    assert await one_round(office) == (0, [])
    seen = await rounds.read_market(office.session)
    assert [job.id for job in seen.doomed] == [second]
    due = doomed_until(await office.job(second))
    assert (due % 300, 300 <= due - (await office.job(second)).submitted_at <= 300 + 360) == (0, True)
    office.grid.anvil.pass_time(due - await office.people.chain.now())
    assert await one_round(office) == (0, [second, third])


async def test_a_thousand_jobs_that_wait_for_one_cost_a_round_one_read(office: Office) -> None:
    first = await office.people.claimed()
    ids: list[int] = []
    while len(ids) < 1000:
        await office.people.operator.mint(office.people.customer.address, 100 * 200 * CREDIT)
        ids += await requested(office, *[Wishes(RATE, after_job=first)] * 100)
    before = await calls_and_transactions(office)
    assert await one_round(office) == (0, [])
    calls, transactions = await calls_and_transactions(office)
    assert (calls - before[0] < 100, transactions) == (True, before[1])
    await office.people.customer.cancel_job(first)
    await office.people.provider.settle(first, JobStatus.CANCELLED, 0)
    ended = [job_id for _ in range(10) for job_id in (await one_round(office))[1]]
    assert sorted(filter(None, ended)) == ids  # a hundred per round
    assert (await calls_and_transactions(office))[1] - transactions == 10


async def calls_and_transactions(office: Office) -> tuple[int, int]:
    """Return the count of requests that the operator's session sent, and of mined transactions of its account."""
    sent = office.session.metrics.registry.get_sample_value("deepgrid_operator_rpc_calls_total")
    mined, _ = await office.people.chain.transaction_counts(office.session.sender.address)
    return int(sent or 0), mined


@pytest.mark.long
async def test_a_chain_goes_on_after_each_kill_of_the_operator(office: Office, tmp_path: Path) -> None:
    """Each process is killed between two jobs, and the next one finds its state as it was left."""
    ids = [await office.people.running()]
    for _ in killed_rounds.POINTS:
        ids += await requested(office, Wishes(RATE, after_job=ids[-1]))
    behind = await requested(office, Wishes(RATE, after_job=ids[-1]))
    for point, (earlier, later) in zip(killed_rounds.POINTS, itertools.pairwise(ids), strict=True):
        await office.people.provider.settle(earlier, JobStatus.FINISHED, 1)
        assert await operator_process(office, tmp_path, point) == -signal.SIGKILL
        assert await status(office, later) is (JobStatus.META_SCHEDULED if point == "sent" else JobStatus.PENDING)
        await rounds_after_a_kill(office, tmp_path)
        claimed = await office.people.provider.claim_next()
        assert claimed is not None and claimed.job_id == later
        assert await office.people.provider.claim_next() is None, "assigned once"
        await office.people.provider.set_running(later, 0)
        await pass_a_second(office.people.chain)
    await office.people.provider.settle(ids[-1], JobStatus.FAILED, 1, "", 256)
    assert await operator_process(office, tmp_path, "ending") == -signal.SIGKILL
    await rounds_after_a_kill(office, tmp_path)
    assert (await office.job(behind[0])).status is JobStatus.CANCELLED


async def operator_process(office: Office, folder: Path, point: str) -> int:
    """Run the operator's rounds in a process that kills itself at this point. Returns its exit status."""
    arguments = [str(folder / "grid.json"), str(office.grid.operator_key), str(folder / "killed"), point]
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", killed_rounds.__name__, *arguments)
    return await process.wait()


async def rounds_after_a_kill(office: Office, folder: Path) -> None:
    """Run the operator's rounds on the state that a killed process left."""
    settings = killed_rounds.settings_of(folder / "grid.json", office.grid.operator_key, folder / "killed")
    async with operator_session(settings) as session:
        await killed_rounds.run_rounds(session)


async def test_a_job_waits_again_when_the_end_of_the_first_is_reorganised_away(office: Office) -> None:
    first = await office.people.running()
    then, later = await requested(office, Wishes(RATE, after_job=first), Wishes(RATE, after_job=first, after_any=True))
    fork = await office.people.chain.head()
    await office.people.provider.settle(first, JobStatus.FINISHED, 1)
    assert await one_round(office) == (2, [])
    await reorganise(office, fork.number)
    assert await status(office, first) is JobStatus.RUNNING
    assert await one_round(office) == (0, [])
    assert {await status(office, job_id) for job_id in (then, later)} == {JobStatus.PENDING}
    await office.people.provider.settle(first, JobStatus.FAILED, 1, "", 256)  # on the new branch it ends otherwise
    assert (await one_round(office))[1] == [then]
    assert await status(office, later) is JobStatus.META_SCHEDULED  # by this round, or by what was sent again before
    assert await status(office, then) is JobStatus.CANCELLED


async def reorganise(office: Office, fork: int) -> None:
    """Replace the blocks after this one by empty ones."""
    await office.people.rest()
    depth = (await office.people.chain.head()).number - fork
    await asyncio.to_thread(office.grid.anvil.call, "anvil_reorg", depth, [])


async def test_a_chain_that_is_reorganised_away_leaves_nothing_behind(office: Office) -> None:
    """The round that is under way then fails as a whole, or has nothing to do. What is requested again is assigned."""
    fork = await office.people.chain.head()
    first = await office.people.claimed()
    (then,) = await requested(office, Wishes(RATE, after_job=first))
    assert await one_round(office) == (0, [])
    await reorganise(office, fork.number)
    with pytest.raises(NotFound):  # the follower has not seen it
        await rounds.read_market(office.session)
    assert await one_round(office) == (0, [])
    assert await office.people.chain.job_count() == first - 1
    with pytest.raises(ContractError) as refused:
        await requested(office, Wishes(RATE, after_job=first))
    assert refused.value.name == "NoEarlierJob"
    again = await office.people.running()
    (second,) = await requested(office, Wishes(RATE, after_job=again))
    assert (again, second) == (first, then)
    assert await one_round(office) == (0, [])
    await office.people.provider.settle(again, JobStatus.FINISHED, 1)
    assert await one_round(office) == (1, [])


async def test_a_raise_of_prices_leaves_jobs_without_a_ceiling_to_others(office: Office) -> None:
    open_one, bounded = await requested(office, Wishes(), Wishes(10 * RATE))
    people = office.people
    raised = await people.chain.raised_at([people.provider.address])
    assert raised[people.provider.address] < (await office.job(open_one)).submitted_at
    prices = (await people.chain.provider(people.provider.address)).prices
    dearer = type(prices)(2 * prices.gpu_wei_per_minute, prices.cpu_wei_per_minute, prices.mem_wei_per_mb_minute)
    provider = await people.chain.provider(people.provider.address)
    await people.provider.register(provider.hardware, dearer, provider.labels)
    proposal = await people.chain.proposal(people.provider.address)
    assert proposal is not None
    await people.operator.approve_proposal(people.provider.address, proposal_hash(proposal))
    assert await one_round(office) == (1, [])
    assert await status(office, bounded) is JobStatus.META_SCHEDULED
    assert await status(office, open_one) is JobStatus.PENDING
    seen = await rounds.read_market(office.session)
    (waiting,) = (await rounds.decide(office.session, seen)).found.waiting
    assert "raised its prices after the request" in waiting.reason
