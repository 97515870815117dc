"""Two real processes on one PostgreSQL behind a proxy: either one answers, and a killed one loses nothing."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest

from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.lifecycle.job import JobDefinition
from deepgrid.services.client import ServicesClient
from tests.appending import push_log
from tests.chain.grid import CREDIT, Grid, People, gather_people, running_grid
from tests.services.postgres_support import private_postgres
from tests.services.processes_support import ServingProcess, persistently, round_robin, serving
from tests.services.support import a_job

pytestmark = pytest.mark.long
CHUNKS = [b"%04d\n" % number for number in range(60)]
STOPPED_WITHIN_S = 10


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    with running_grid(tmp_path_factory.mktemp("two-processes")) as grid:
        yield grid


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with private_postgres() as url:
        yield url


async def test_a_killed_process_loses_nothing(real: Grid, postgres: str, tmp_path: Path) -> None:
    book = real.book.save(tmp_path / "grid.json")
    async with AsyncExitStack() as stack:
        chain = await stack.enter_async_context(await Chain.connect(real.book))
        people = await gather_people(real, chain, "two")
        served = [
            await stack.enter_async_context(serving(book, postgres, tmp_path / "secret", tmp_path / f"log-{number}"))
            for number in range(2)
        ]
        url = await stack.enter_async_context(round_robin([one.port for one in served]))
        customer, provider, operator = [
            await stack.enter_async_context(ServicesClient.of(real.book, Wallet.load(real.keys / name).account, url))
            for name in ("two-c", "two-p", "operator")
        ]
        first = await persistently(lambda: customer.upload(a_job()))
        job_id = await claimed(people, first)
        reading = asyncio.create_task(read_to_the_end(customer, job_id))
        uploads = [asyncio.create_task(upload(customer, number)) for number in range(40)]
        await push_and_kill(provider, job_id, served[0])
        hashes = await asyncio.gather(*uploads)
        assert await asyncio.wait_for(reading, 120) == b"".join(CHUNKS)
        await persistently(lambda: operator.post_notice(job_id, "assigned", "cheapest"))
        assert [one.text for one in await persistently(lambda: customer.notices(job_id))] == ["cheapest"]
        for number in (0, 20, 39):
            again = await claimed(people, hashes[number])
            fetch = partial(provider.fetch_definition, again, hashes[number])
            assert await persistently(fetch) == a_job(f"echo {number}")
        await stops_in_time(served[1], customer, again)


async def upload(customer: ServicesClient, number: int) -> str:
    return await persistently(lambda: customer.upload(a_job(f"echo {number}")))


async def push_and_kill(provider: ServicesClient, job_id: int, victim: ServingProcess) -> None:
    """Push all chunks. The victim is killed after half of them."""
    at = 0
    for number, chunk in enumerate(CHUNKS):
        if number == len(CHUNKS) // 2:
            victim.process.kill()
        at = await persistently(partial(push_log, provider, job_id, at, chunk, final=number == len(CHUNKS) - 1))


async def read_to_the_end(customer: ServicesClient, job_id: int) -> bytes:
    found, final = b"", False
    while not final:
        chunk = await persistently(partial(customer.read_log, job_id, len(found), wait_s=5))
        found, final = found + chunk.data, chunk.final
    return found


async def stops_in_time(served: ServingProcess, customer: ServicesClient, job_id: int) -> None:
    """Check that SIGTERM ends the process, even with a waiting reader. It logs only sentences."""
    reading = asyncio.create_task(customer.read_log(job_id, wait_s=25))
    await asyncio.wait([reading], timeout=2)
    assert not reading.done()
    started = time.monotonic()
    served.process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(served.process.wait(), 60) == 0
    assert time.monotonic() - started < STOPPED_WITHIN_S
    assert "Traceback" not in served.log.read_text()
    await asyncio.gather(reading, return_exceptions=True)


async def claimed(people: People, definition_hash: str) -> int:
    """Return a claimed job that names this definition."""
    figures = JobDefinition(gpus=0, mem_per_cpu_mb=128, cpus_per_task=1, ntasks=1, definition_hash=definition_hash)
    job_id = await people.customer.request_job(figures, 200 * CREDIT, "a job", approve_first=200 * CREDIT)
    await people.operator.meta_schedule(job_id, people.provider.address)
    await people.provider.claim_next()
    return job_id
