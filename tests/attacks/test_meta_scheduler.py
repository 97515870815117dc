"""Customers that try to keep clusters from others, or to keep the meta-scheduler busy, without paying for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deepgrid.chain.batches import Request
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.writer import Writer
from deepgrid.lifecycle.job import JobDefinition
from deepgrid.lifecycle.states import JobStatus
from deepgrid.operator import rounds
from tests.chain.grid import CREDIT, DEFINITION, HARDWARE
from tests.operator.conftest import grid as grid
from tests.operator.conftest import office as office
from tests.operator.office import HOUR_S, Office

S = JobStatus
CPUS = sum(HARDWARE.cpus_per_node)
WHOLE = replace(DEFINITION, uses=(), affinity=(), gpus=0, ntasks=CPUS, cpus_per_task=1, mem_per_cpu_mb=1)
LOCKED_WEI = 2_000 * CREDIT
ATTEMPTS = 18  # as carried out in the review
FREE = 3


async def stranger(office: Office) -> Writer:
    """A customer of whom the grid knows nothing, with credits."""
    writer = Writer(office.people.chain, Sender(office.people.chain, office.grid.new_key("stranger")))
    await office.people.operator.mint(writer.address, ATTEMPTS * LOCKED_WEI)
    await writer.approve(ATTEMPTS * LOCKED_WEI)
    return writer


async def request(office: Office, who: Writer, count: int = 1, definition: JobDefinition = WHOLE) -> list[int]:
    ids = await who.request_jobs([Request(definition, LOCKED_WEI, "a job")] * count)
    await office.catch_up()
    return ids


async def one_round(office: Office) -> None:
    """What the flow does, without Prefect."""
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
    """An honest customer who used the grid before came after each job of the stranger, who had paid for nothing."""
    honest, thief = office.people.customer, await stranger(office)
    await honest.approve(2 * LOCKED_WEI)
    (paid,) = await request(office, honest)
    await one_round(office)
    await office.people.provider.claim_next()
    await office.people.provider.set_running(paid, 0)
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
    words = "you cancelled several jobs that kept a cluster from others; your jobs wait until"
    assert all(told[job_id].startswith(words) for job_id in queue[kept:])
