"""Customers that try to keep clusters from others, or to keep the meta-scheduler busy, without paying for it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from deepgrid.chain.batches import Request
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.writer import Writer
from deepgrid.lifecycle.job import Affinity, Job, JobDefinition
from deepgrid.lifecycle.states import JobStatus
from deepgrid.operator import rounds
from deepgrid.scheduling.market import Market, Round
from deepgrid.scheduling.rounds.scheduler import Scheduler
from tests.chain.grid import CREDIT, DEFINITION, HARDWARE
from tests.operator.conftest import grid as grid
from tests.operator.conftest import office as office
from tests.operator.office import HOUR_S, Office
from tests.scheduling.markets import NOW, clusters, pending

S = JobStatus
CPUS = sum(HARDWARE.cpus_per_node)
WHOLE = replace(DEFINITION, uses=(), affinity=(), gpus=0, ntasks=CPUS, cpus_per_task=1, mem_per_cpu_mb=1)
LOCKED_WEI = 2_000 * CREDIT
ATTEMPTS = 18  # as the review did it
FREE = 3
WAITS = "you cancelled several jobs that kept a cluster from others; your jobs wait until"


async def stranger(office: Office) -> Writer:
    """Return a customer with credits who is new to the grid."""
    writer = Writer(office.people.chain, Sender(office.people.chain, office.grid.new_key("stranger")))
    await office.people.operator.mint(writer.address, ATTEMPTS * LOCKED_WEI)
    await writer.approve(ATTEMPTS * LOCKED_WEI)
    return writer


async def request(office: Office, who: Writer, count: int = 1, definition: JobDefinition = WHOLE) -> list[int]:
    ids = await who.request_jobs([Request(definition, LOCKED_WEI, "a job")] * count)
    await office.catch_up()
    return ids


async def taken(office: Office, who: Writer, definition: JobDefinition = WHOLE) -> int:
    """Return a job of this customer that takes the cluster, or a part of it."""
    (running,) = await request(office, who, definition=definition)
    await one_round(office)
    await office.people.provider.claim_next()
    await office.people.provider.set_running(running, 0)
    return running


async def one_round(office: Office) -> None:
    """Do what the flow does, without Prefect."""
    seen = await rounds.read_market(office.session)
    decision = await rounds.decide(office.session, seen)
    await rounds.assign(office.session, decision)
    await rounds.tell(office.session, decision, 0)
    await office.catch_up()


@pytest.mark.attack(
    "submits jobs for a whole cluster and cancels each as soon as it is assigned",
    attacker="a customer", gain="the cluster, for four short times",
    defence="time that a cancelled job kept a cluster counts as use; after three such cancels the customer's jobs wait",
)  # fmt: skip
async def test_cancelled_jobs_do_not_keep_a_cluster_from_others(office: Office) -> None:
    """Before, the stranger's jobs came before the jobs of an honest customer with past use, although the stranger paid
    nothing.
    """
    honest, thief = office.people.customer, await stranger(office)
    await honest.approve(2 * LOCKED_WEI)
    paid = await taken(office, honest)
    queue = await request(office, thief, ATTEMPTS)
    (wanted,) = await request(office, honest)
    office.pass_time(HOUR_S)
    await one_round(office)
    await office.people.provider.settle(paid, S.FINISHED, 60)
    await office.catch_up()
    kept = 0
    for held in queue:
        await one_round(office)
        if (await office.job(held)).status is not S.META_SCHEDULED:
            break
        kept += 1
        await thief.cancel_job(held)
        await office.catch_up()
    assert kept == FREE + 1
    assert (await office.job(wanted)).status is S.META_SCHEDULED
    told = {job_id: text for job_id, kind, text in office.notices if kind == "waiting"}
    assert all(told[job_id].startswith(WAITS) for job_id in queue[kept:])


@pytest.mark.attack(
    "a short job that passed a waiting large one is topped up again and again",
    attacker="a customer", gain="only the time that it pays for; the large job's notice shows the new start at once",
    defence="topped-up time counts as use of its customer; a moved reservation gives a new notice",
)  # fmt: skip
async def test_a_reservation_that_a_top_up_moves_is_told_anew(office: Office) -> None:
    """The notice kept the old estimate: only one change of the place in five minutes was published."""
    honest, thief = office.people.customer, await stranger(office)
    await honest.approve(LOCKED_WEI)
    small = await taken(office, thief, replace(WHOLE, ntasks=1))
    (large,) = await request(office, honest)
    await one_round(office)
    for times in (2, 3):
        await thief.top_up(small, LOCKED_WEI)
        await office.catch_up()
        await one_round(office)
        told = [text for job_id, _, text in office.notices if job_id == large]
        assert len(set(told)) == len(told) == times
    assert all("estimated start" in text for text in told)


@pytest.mark.attack(
    "submits jobs for a whole cluster and cancels each while it is pending, with the next start reserved",
    attacker="a customer", gain="reservations that others' jobs may not delay, four times",
    defence="the time of a cancelled job's reservation counts as use, and its cancel as one of the three that are free",
)  # fmt: skip
async def test_cancelled_jobs_do_not_reserve_a_cluster_for_nothing(office: Office) -> None:
    honest, thief = office.people.customer, await stranger(office)
    await honest.approve(LOCKED_WEI)
    await taken(office, honest)
    for kept in range(FREE + 1):
        (held,) = await request(office, thief)
        await one_round(office)
        assert "estimated start" in office.notices[-1][2]
        office.pass_time(60)
        await thief.cancel_job(held)
        await office.catch_up()
        use = office.session.memory.use.accounts()[thief.address]
        assert (round(use.cancels, 1), use.past.cpus > 0) == (kept + 1, True)
    await request(office, thief)
    await one_round(office)
    assert office.notices[-1][2].startswith(WAITS)


FLOOD, CONDITIONS, CLUSTERS = 2_000, 64, 50
MOST_WORK = 20  # times the work for as many jobs with one unmet condition; it was 160 times


def calls(act: Callable[[], Round]) -> tuple[int, Round]:
    """Return how many functions are called: a measure of work that does not depend on the machine."""
    count = 0

    def note(*_: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(note)
    try:
        result = act()
    finally:
        sys.setprofile(None)
    return count, result


def impossible(conditions: int) -> list[Job]:
    """Return jobs that no cluster can take; each has this number of conditions, which no other job has."""
    return [
        pending(job_id, customer="0xf100d", affinity=(
            *(Affinity("compute.gflops", ">", f"0.{job_id:04}{number:02}") for number in range(1, conditions)),
            Affinity("zone", "==", "nowhere"),
        ))
        for job_id in range(1, FLOOD + 1)
    ]  # fmt: skip


@pytest.mark.attack(
    "2,000 pending jobs with 64 different conditions each",
    attacker="a customer", gain="at most 20,000 comparisons per round, and none with jobs that were compared before",
    defence="customers take turns at comparisons; jobs that fit nowhere are compared again after a change",
)  # fmt: skip
def test_the_work_of_a_round_is_bounded() -> None:
    """The first round took 17.8 s and each later one 6.5 s, instead of 0.5 and 0.4 s."""
    market, scheduler, plain = Market(clusters(CLUSTERS), NOW), Scheduler(), Scheduler()
    flood, honest = impossible(CONDITIONS), pending(FLOOD + 1, customer="0xc")
    usual = calls(lambda: plain.round([*impossible(1), honest], market))[0]
    first, found = calls(lambda: scheduler.round([*flood, honest], market))
    assert [one.job_id for one in found.assignments] == [honest.id], "an honest job is compared in the first round"
    assert first < MOST_WORK * usual
    while found.left:
        work, found = calls(lambda: scheduler.round(flood, market))
        assert work < MOST_WORK * usual
    again, found = calls(lambda: scheduler.round(flood, market))
    assert again < usual
    assert len(found.waiting) == FLOOD
    assert {one.reason for one in found.waiting} == {
        f"no cluster can take it: {CLUSTERS} clusters have no label zone==nowhere"
    }
