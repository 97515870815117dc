"""Faults of the chain: its history, its fees, the process of its node, and its operator."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from deepgrid.chain.writer import Writer
from deepgrid.errors import ContractError
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from deepgrid.operator.expiry import OVERTAKEN
from tests.chaos.administration import Administrator
from tests.chaos.batch import LOCKED_WEI
from tests.chaos.fault import Allowed, Fault
from tests.chaos.node import DEPTH, GWEI, USUAL_BASE_FEE, NodeKeeper, until
from tests.chaos.proxy import Down, Pass
from tests.chaos.world import World

GAS_MONEY_WEI = 10**24

# The events on the chain that show that a report was mined.
REPORTS: dict[str, Callable[[Job], bool]] = {
    "request": lambda job: True,
    "assignment": lambda job: job.status >= JobStatus.META_SCHEDULED,
    "claim": lambda job: job.claimed_at > 0,
    "RUNNING report": lambda job: job.status >= JobStatus.RUNNING,
    "settlement": lambda job: job.status.cold,
    "cancel request": lambda job: job.has_cancel_request or job.status is JobStatus.CANCELLED,
    "cancellation": lambda job: job.status is JobStatus.CANCELLED,
    "top-up": lambda job: job.locked_wei > LOCKED_WEI,
}
NEEDS = {"cancel request": ("cancelled",), "cancellation": ("cancelled",), "top-up": ("topped up",)}


@asynccontextmanager
async def reorganised(report: str, depth: int, world: World, rng: random.Random) -> AsyncIterator[None]:
    """Blocks are dropped shortly after a report was mined, so that the report is lost."""
    node = NodeKeeper(world)
    known = await world.chain.job_count()
    yield
    await node.until_job(REPORTS[report], known, f"a {report}")
    await asyncio.sleep(rng.uniform(0, depth - 1))
    counts = await node.counts()
    await node.reorganise(depth)
    await node.regain(counts)


@asynccontextmanager
async def reorganised_at_refusal(world: World, rng: random.Random) -> AsyncIterator[None]:
    """The cluster stops taking jobs, so claims are given back. Then the chain forgets that."""
    cluster, node = Administrator.of(world), NodeKeeper(world)
    partition = f"PartitionName={cluster.settings.partition}"
    known = await world.chain.job_count()
    yield
    await node.until_job(REPORTS["claim"], known, "a claim")
    await cluster.ask("scontrol", "update", partition, "State=DRAIN")
    try:
        await node.until_job(lambda job: job.last_refuser is not None, known, "a refusal")
    finally:
        await cluster.ask("scontrol", "update", partition, "State=UP")
    await asyncio.sleep(rng.uniform(0, DEPTH - 1))
    counts = await node.counts()
    await node.reorganise()
    await node.regain(counts)


@asynccontextmanager
async def reorganised_again_and_again(world: World, rng: random.Random) -> AsyncIterator[None]:
    node = NodeKeeper(world)
    yield
    for _ in range(rng.randint(3, 5)):
        await asyncio.sleep(rng.uniform(1, 4))
        counts = await node.counts()
        await node.reorganise(rng.randint(1, DEPTH))
    await node.regain(counts)


@asynccontextmanager
async def killed_and_reorganised(world: World, rng: random.Random) -> AsyncIterator[None]:
    """No process remembers what the chain forgot. The next supervisor does it again."""
    node = NodeKeeper(world)
    yield
    await asyncio.sleep(rng.uniform(0, 6))
    await world.supervisor.kill()
    counts = await node.counts()
    counts.pop(world.provider)
    await node.reorganise()
    world.supervisor.start()
    await node.regain(counts)


@asynccontextmanager
async def node_restarted(in_order: bool, world: World, rng: random.Random) -> AsyncIterator[None]:
    """The node is down for some seconds. After a power cut it has also lost the seconds before."""
    node = NodeKeeper(world)
    counts: dict[str, int] = {}
    try:
        yield
        await asyncio.sleep(rng.uniform(0, 5))
        counts = await node.counts()
        await (node.end() if in_order else node.cut_power())
        await asyncio.sleep(rng.uniform(0, 5))
    finally:
        await node.start()
    await node.regain(counts)


@asynccontextmanager
async def fees_rise(times: int, world: World, rng: random.Random) -> AsyncIterator[None]:
    """From one block to the next, all transactions in the pool offer too little."""
    node = NodeKeeper(world)
    await node.stop_mining()
    try:
        await asyncio.sleep(rng.uniform(1, 3))
        await node.set_base_fee(times * USUAL_BASE_FEE)
        await node.mine_every_second()
        yield
        await asyncio.sleep(rng.uniform(2, 8))
    finally:
        await node.mine_every_second()
        await node.set_base_fee(USUAL_BASE_FEE)


@asynccontextmanager
async def out_of_gas_money(world: World, rng: random.Random) -> AsyncIterator[None]:
    """The provider's wallet is empty for a while."""
    node = NodeKeeper(world)
    await node.set_gas_money(world.provider, rng.choice((0, 1000 * GWEI)))
    try:
        yield
        await asyncio.sleep(rng.uniform(2, 6))
    finally:
        await node.set_gas_money(world.provider, GAS_MONEY_WEI)


@asynccontextmanager
async def mining_stopped(least_s: float, most_s: float, world: World, rng: random.Random) -> AsyncIterator[None]:
    """No block is mined, and transactions wait."""
    node = NodeKeeper(world)
    injected = asyncio.create_task(_without_blocks(node, rng.uniform(least_s, most_s)))
    yield
    await injected


async def _without_blocks(node: NodeKeeper, seconds: float) -> None:
    await node.stop_mining()
    try:
        await asyncio.sleep(seconds)
    finally:
        await node.mine_every_second()


@asynccontextmanager
async def mining_each_transaction(world: World, rng: random.Random) -> AsyncIterator[None]:
    """A block is mined at once for each transaction, and only then."""
    node = NodeKeeper(world)
    await node.mine_each_transaction()
    try:
        yield
        await asyncio.sleep(rng.uniform(3, 10))
    finally:
        await node.mine_every_second()


@asynccontextmanager
async def pool_emptied(world: World, rng: random.Random) -> AsyncIterator[None]:
    """The node repeatedly drops its pending transactions."""
    node = NodeKeeper(world)
    yield
    for _ in range(rng.randint(5, 20)):
        await node.call("anvil_dropAllTransactions")
        await asyncio.sleep(rng.uniform(0.1, 0.9))


@asynccontextmanager
async def banned(world: World, rng: random.Random) -> AsyncIterator[None]:
    """The operator bans the provider. Running jobs are settled, waiting ones go to another cluster."""
    async with world.acting("operator") as operator:
        known = await world.chain.job_count()
        yield
        await NodeKeeper(world).until_job(REPORTS["claim"], known, "a claim")
        await operator.ban_provider(world.provider)
        try:
            await asyncio.sleep(rng.uniform(5, 20))
        finally:
            await operator.unban_provider(world.provider)


@asynccontextmanager
async def assignments_expire(world: World, rng: random.Random) -> AsyncIterator[None]:
    """The provider's node is down until its time to claim is over. Unclaimed jobs go to another cluster."""
    node, known = NodeKeeper(world), await world.chain.job_count()
    waits = partial(_waits_for, world.provider)

    async def taken_back() -> bool:
        jobs = await world.chain.jobs(list(range(known + 1, await world.chain.job_count() + 1)))
        return not any(map(waits, jobs))

    await asyncio.to_thread(world.rpc.set, Down())
    try:
        yield
        await node.until_job(waits, known, "a job that is assigned to it")
        await asyncio.sleep(rng.uniform(0, 3))
        await node.jump(60 * (await world.chain.constants()).claim_timeout_minutes + 1)
        await until(taken_back, "what was assigned is taken back")
    finally:
        await asyncio.to_thread(world.rpc.set, Pass())


def _waits_for(provider: str, job: Job) -> bool:
    return job.status is JobStatus.META_SCHEDULED and job.provider == provider


@asynccontextmanager
async def taken_away(world: World, rng: random.Random) -> AsyncIterator[None]:
    """The operator takes back claims that the provider is working on, and the jobs go to other clusters."""
    async with world.acting("operator") as operator:
        known = await world.chain.job_count()
        yield
        await NodeKeeper(world).until_job(lambda job: job.status is JobStatus.SCHEDULED, known, "a claim that waits")
        await operator.ban_provider(world.provider)
        try:
            jobs = await world.chain.jobs(await world.chain.claimed_jobs(world.provider))
            for job in jobs:
                if job.id > known and job.status is JobStatus.SCHEDULED and rng.random() < 0.7:
                    await _time_out(operator, job)
        finally:
            await operator.unban_provider(world.provider)


async def _time_out(operator: Writer, job: Job) -> None:
    try:
        await operator.time_out(job.id)
    except ContractError as error:  # its state has changed meanwhile
        if error.name not in OVERTAKEN:
            raise


def _reorganised(report: str) -> Fault:
    inject = partial(reorganised, report, DEPTH)
    name = f"reorganised across a {report}"
    return Fault(name, inject, NEEDS.get(report, ()), awaited=True)


REFUSED = frozenset({Allowed.REFUSED})
FAULTS = [
    *map(_reorganised, REPORTS),
    Fault("reorganised across a refusal", reorganised_at_refusal, allows=REFUSED),
    Fault("reorganised again and again", reorganised_again_and_again),
    Fault("supervisor killed, then reorganised", killed_and_reorganised),
    Fault("node ended and started", partial(node_restarted, True)),
    Fault("node's power cut", partial(node_restarted, False)),
    Fault("fees rise tenfold", partial(fees_rise, 10)),
    Fault("fees rise a hundredfold", partial(fees_rise, 100)),
    Fault("wallet out of gas money", out_of_gas_money),
    Fault("no block for seconds", partial(mining_stopped, 3, 12)),
    Fault("no block for long", partial(mining_stopped, 33, 45)),
    Fault("blocks only with transactions", mining_each_transaction),
    Fault("pool emptied", pool_emptied),
    Fault("provider banned", banned, allows=REFUSED),
    Fault("assignments expire", assignments_expire, allows=REFUSED),
    Fault("claims taken away", taken_away, allows=REFUSED),
]
