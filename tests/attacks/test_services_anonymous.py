"""Strangers use the requests that need no signature."""

from __future__ import annotations

import asyncio
import threading

import httpx
import pytest
from grpc import aio

from deepgrid.compat.compat_context import NICENESS, CompatLimits, CompatSettings
from deepgrid.compat.logger_api.methods import SERVICE
from deepgrid.compat.unsigned_definitions import store_anonymous
from deepgrid.errors import NotFound
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.admission import Limits, checks
from deepgrid.services.cleanup import Retention, clean_up
from deepgrid.services.refusal import Refusal
from deepgrid.services.storage.database import UnownedDefinition
from deepgrid.workflow import canonical
from tests.appending import push_log
from tests.attacks.http_support import rows
from tests.services.support import ACCOUNTS, Grid, Start, a_job, waits
from tests.waiting import until

SOURCE = "192.0.2.1"
THEFT = {"customer": ACCOUNTS["rival"].address, "provider": ACCOUNTS["other_provider"].address}


@pytest.mark.attack(
    "copies the hash of an unsigned definition from a mined job, even after a reorganisation",
    attacker="a stranger with credits", gain="nothing",
    defence="the definition belongs to the customer of the first job that the service saw",
)  # fmt: skip
async def test_a_later_copy_gets_nothing(start: Start) -> None:
    grid = await start()
    definition_hash = await store_anonymous(grid.compat, SOURCE, canonical(a_job()))
    grid.chain.put(1, definition_hash, JobStatus.PENDING)
    grid.chain.put(2, definition_hash, **THEFT)
    for job_id in (2, 1):
        with pytest.raises(NotFound):
            await grid.other_provider.fetch_definition(2, definition_hash)
        grid.chain.put(job_id, definition_hash, **THEFT)
    with pytest.raises(NotFound):
        await grid.other_provider.fetch_definition(1, definition_hash)


@pytest.mark.attack(
    "copies the hash of an unsigned definition from a waiting transaction, and is mined first",
    attacker="a stranger with credits", gain="this definition, at its own provider; the customer pays nothing",
    defence="only definitions without a signature; signed uploads have their owner from the start",
)  # fmt: skip
async def test_who_is_mined_first_gets_the_unsigned_definition_only(start: Start) -> None:
    grid = await start()
    unsigned = await store_anonymous(grid.compat, SOURCE, canonical(a_job()))
    signed = await grid.customer.upload(a_job())
    for job_id, definition_hash in ((1, unsigned), (2, signed)):
        grid.chain.put(job_id, definition_hash, **THEFT)
        grid.chain.put(job_id + 2, definition_hash)
    assert await grid.other_provider.fetch_definition(1, unsigned) == a_job()
    with pytest.raises(NotFound):
        await grid.provider.fetch_definition(3, unsigned)
    with pytest.raises(NotFound):
        await grid.other_provider.fetch_definition(2, signed)
    assert await grid.provider.fetch_definition(4, signed) == a_job()


@pytest.mark.attack(
    "stores definitions that no job ever names, from many addresses", attacker="a stranger with HTTP",
    gain="10,000 definitions and 256 MiB for an hour; other unsigned ones are refused meanwhile",
    defence="limits per source address and in all; signed uploads do not count",
)  # fmt: skip
async def test_definitions_that_nobody_wants_are_bounded_and_go(start: Start) -> None:
    grid = await start(compat=CompatSettings(limits=CompatLimits(definitions=4, definitions_per_address=2)))
    for number in range(10):
        try:
            await store_anonymous(grid.compat, f"192.0.2.{number // 3}", canonical(a_job()))
        except Refusal as refusal:
            assert refusal.status == 429  # noqa: PT017 - some are accepted
    assert await rows(grid, UnownedDefinition) == 4
    await grid.customer.upload(a_job())
    grid.clock.ahead_s = 3700
    await clean_up(grid.context, Retention())
    assert await rows(grid, UnownedDefinition) == 0


@pytest.mark.attack(
    "unsigned definitions whose check never ends", attacker="a stranger with HTTP",
    gain="one check at a time, at the lowest priority, until its limit of time",
    defence="a queue, threads and verdicts separate from signed uploads",
)  # fmt: skip
async def test_checks_for_strangers_delay_no_customer(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()

    def check(_script: str, *, niceness: int) -> None:
        assert niceness != NICENESS or go_on.wait(120)

    monkeypatch.setattr(checks, "lint_script", lambda *_, **__: None)
    monkeypatch.setattr(checks, "check_grammar", check)  # every script has this check
    grid = await start(compat=CompatSettings(limits=CompatLimits(check_wait_s=0.2, checks_waiting_per_address=1)))
    try:
        # The first one holds the only slot; the others leave the queue after their time.
        first = asyncio.create_task(store_anonymous(grid.compat, "192.0.2.0", canonical(a_job("echo first"))))
        await until(lambda: running(grid))
        for number in range(1, 4):
            with pytest.raises(Refusal):
                await store_anonymous(grid.compat, f"192.0.2.{number}", canonical(a_job(f"echo {number}")))
        for number in range(3):
            await grid.customer.upload(a_job(f"echo signed {number}"))
        assert not first.done()
    finally:
        go_on.set()
    assert len(await first) == 64


@pytest.mark.attack(
    "fills all places for requests with calls over gRPC that never send their request, and with streams of health",
    attacker="a stranger with HTTP", gain="other existing clients are refused for 30 s",
    defence="running requests and streams of existing clients are counted apart from signed requests and their readers",
)  # fmt: skip
async def test_calls_of_existing_clients_take_no_place_of_signed_requests(start: Start) -> None:
    grid = await start(
        grpc_port=0, limits=Limits(running=2, followers=2), compat=CompatSettings(limits=CompatLimits(running=2))
    )
    grid.chain.put(1, "0" * 64, JobStatus.RUNNING)
    await push_log(grid.provider, 1, 0, b"first")
    async with aio.insecure_channel(str(grid.grpc)) as channel:
        watching = [channel.unary_stream("/grpc.health.v1.Health/Watch")(b"") for _ in range(2)]
        for call in watching:
            await call.read()
        silent = [channel.stream_stream(f"/{SERVICE}/Read")() for _ in range(2)]
        await until(lambda: all_run(grid))
        refused = channel.unary_stream(f"/{SERVICE}/Read")(b"")
        assert (await refused.code()).name == "RESOURCE_EXHAUSTED"
        async with httpx.AsyncClient() as client:
            assert (await client.get(f"{grid.url}/graphql")).status_code == 429
        await grid.customer.upload(a_job())
        reading = asyncio.create_task(grid.customer.read_log(1, 5, wait_s=25))
        await until(lambda: waits(grid, 1))
        await push_log(grid.provider, 1, 5, b" second")
        assert (await reading).data == b" second"
        for call in (*watching, *silent):
            call.cancel()


async def all_run(grid: Grid) -> bool:
    return grid.compat.admission.running.all_held == 2


async def running(grid: Grid) -> bool:
    return grid.compat.checks.queue.running == 1
