"""Offers before money moves, and the wishes that a submission leaves on chain."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from deepgrid.chain.client import Chain
from deepgrid.client import AsyncGrid, ClusterOffer, InputError, NotFound
from deepgrid.client.job_values import credits_of
from deepgrid.lifecycle.job import Label, Prefer
from tests.chain.grid import approve_waiting
from tests.cli.live import CREDIT, HARDWARE, LABELS, PRICES, Live, Party, party
from tests.client.stage import Stage

JOB = {"resources": {"tasks": 1, "cpusPerTask": 2, "memPerCpu": 500, "gpus": 0}, "steps": []}
RATE = 2 * CREDIT  # of JOB at PRICES


def _of(offers: object, address: str) -> ClusterOffer:
    (found,) = [one for one in offers if one.address == address]  # type: ignore[attr-defined]
    assert isinstance(found, ClusterOffer)
    return found


async def test_offers_say_what_each_cluster_would_be(grid: AsyncGrid, stage: Stage, provider: Party) -> None:
    offers = await grid.offers(JOB, 90, uses=["os=linux"])
    only = provider.address  # a start is estimated for the cheapest clusters, and other tests have made many
    offer = _of(await grid.offers(JOB, 90, uses=["os=linux"], provider=only), only)
    assert (offer.fits, offer.rate, offer.minutes, offer.wait_s) == (True, 2, 45, 0)
    assert offer.speed is None
    assert 0 < offer.reliability <= 1
    assert [one.fits for one in offers] == sorted((one.fits for one in offers), reverse=True), "those that fit first"
    job = await grid.submit({**JOB, "resources": {**JOB["resources"], "tasks": 4}}, credits=100, max_price="any")
    await stage.run(job)
    busy = _of(await grid.offers(JOB, 90, provider=only), only)
    assert busy.wait_s is not None
    assert 0 < busy.wait_s <= 12 * 60, "after the job that fills the cluster for 12 minutes"


@pytest.mark.parametrize(
    ("narrowed", "why"),
    [
        ({"uses": ["os=windows"]}, "has os=linux, not os==windows"),
        ({"affinities": ["cpus>=999"]}, "has no label cpus>=999"),
        ({"min_time": "46m"}, "46 minutes wanted"),
        ({"max_price": "1.9"}, "costs 2 credits per minute, above 1.9"),
    ],
)
async def test_wishes_narrow_the_offers(
    grid: AsyncGrid, provider: Party, narrowed: dict[str, object], why: str
) -> None:
    offers = await grid.offers(JOB, 90, provider=provider.address, **narrowed)  # type: ignore[arg-type]
    assert [one.address for one in offers] == [provider.address]
    assert why in offers[0].obstacle
    assert not offers[0].fits


async def test_a_job_for_which_no_cluster_has_the_means_is_refused_before_it_costs(
    grid: AsyncGrid, provider: Party
) -> None:
    job = {**JOB, "steps": [{"run": {"command": "true", "container": {"image": "ubuntu:latest"}}}]}
    (offer,) = await grid.offers(job, 90, provider=provider.address)
    assert offer.obstacle == "has no label containers!=none (a container runtime)"
    before = await grid.wallet.credits
    with pytest.raises(InputError, match="needs a container runtime, which no cluster of the grid has"):
        await grid.submit(job, credits=100, max_price="any")
    assert await grid.wallet.credits == before
    waits = await grid.submit(job, credits=100, max_price="any", affinities=["containers!=none"])
    assert [one.key for one in waits.on_chain.definition.affinity] == ["containers"], "the customer's own, only once"


async def test_one_cluster_is_looked_at_by_its_name(grid: AsyncGrid, provider: Party) -> None:
    assert {one.cluster for one in await grid.offers(JOB, 90, provider="alpha")} == {"alpha"}
    with pytest.raises(NotFound, match="No approved cluster is named beta"):
        await grid.offers(JOB, 90, provider="beta\x1b[2J")


async def test_names_of_strangers_do_not_steer_a_terminal(
    grid: AsyncGrid, live: Live, chain: Chain, operator: Party
) -> None:
    evil = party(chain, live.grid.new_key("evil"))
    await evil.writer.register(HARDWARE, PRICES, (Label("name", "\x1b[2Jfree"), *LABELS[1:]))
    await approve_waiting(operator.writer, evil.address)
    try:
        assert "\x1b" not in _of(await grid.offers(JOB, 90), evil.address).cluster
    finally:
        await operator.writer.remove_provider(evil.address)
        await evil.close()


async def test_the_dearest_quoted_price_is_the_ceiling(
    grid: AsyncGrid, chain: Chain, live: Live, operator: Party, provider: Party
) -> None:
    dear = party(chain, live.grid.new_key("dearer"))
    await dear.writer.register(HARDWARE, replace(PRICES, cpu_wei_per_minute=4 * CREDIT), (Label("name", "dear"),))
    await approve_waiting(operator.writer, dear.address)
    try:
        job = await grid.submit(JOB, credits=100)
        assert (await chain.job(job.id)).wishes.max_rate_wei == 9 * CREDIT, "any cluster of the quote may take it"
        narrow = await grid.submit(JOB, credits=100, uses=["os=linux"], min_time="20m")
        kept = (await chain.job(narrow.id)).wishes
        assert (kept.max_rate_wei, kept.min_minutes) == (RATE, 20), "only clusters that can take the job count"
        await grid.map(JOB, [{"A": 1}, {"A": 2}], credits=100, uses=["os=linux"], prefer="price")
        async with asyncio.timeout(60):
            while len(ids := await chain.jobs_by_customer(grid.address)) < 4:
                await asyncio.sleep(0.05)
        kept = {one.wishes for one in await chain.jobs(ids[2:])}
        assert [(one.max_rate_wei, one.prefer) for one in kept] == [(RATE, Prefer.PRICE)]
    finally:
        await operator.writer.remove_provider(dear.address)
        await dear.close()


async def test_wishes_of_the_caller_are_kept_on_chain(grid: AsyncGrid, chain: Chain, provider: Party) -> None:
    before = await chain.now()
    job = await grid.submit(JOB, credits=100, max_price="2.5", give_up_after="2h", prefer="speed")
    kept = (await chain.job(job.id)).wishes
    assert (credits_of(kept.max_rate_wei), kept.min_minutes, kept.prefer) == (credits_of(25 * 10**17), 1, Prefer.SPEED)
    assert before + 7200 <= kept.give_up_at <= await chain.now() + 7200
    free = await grid.submit(JOB, credits=100, max_price="any")
    assert (await chain.job(free.id)).wishes.max_rate_wei == 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"max_price": 0}, "highest price is 0"),
        ({"max_price": 1.5}, "is a float"),
        ({"min_time": 0}, "minimum time"),
        ({"min_time": "400d"}, "minimum time"),
        ({"give_up_after": "599s"}, "after 10 minutes at the earliest"),
        ({"prefer": "luck"}, "'luck' is no preference"),
    ],
)
async def test_wrong_wishes_are_refused_before_anything_is_sent(
    grid: AsyncGrid, wrong: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        await grid.submit(JOB, credits=100, **wrong)  # type: ignore[arg-type]
