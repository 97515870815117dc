"""Existing clients read their logs over gRPC and both forms of gRPC-web, from the first line to the end."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest
from grpc import aio
from grpclib.health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from deepgrid.compat.compat_context import CompatContext, CompatLimits, CompatSettings
from deepgrid.compat.logger_api import methods
from deepgrid.compat.logger_api.log_lines import LONGEST_LINE_BYTES
from deepgrid.compat.logger_api.logger_pb2 import ReadResponse, WatchListResponse
from deepgrid.lifecycle.states import JobStatus
from tests.appending import push_log
from tests.compat.logger_support import (
    TRANSPORTS,
    WITHIN_S,
    Ended,
    end_of,
    lines_of,
    list_request,
    log_name,
    now_ms,
    read_request,
    stream,
)
from tests.services.support import ACCOUNTS, Grid, Start, waits
from tests.waiting import until

NAME = "0" * 64
every_transport = pytest.mark.parametrize("transport", TRANSPORTS)


@pytest.fixture
async def served(start: Start) -> Grid:
    grid = await start(grpc_port=0, compat=CompatSettings(limits=CompatLimits(list_every_s=0.2, job_within_s=0.5)))
    grid.chain.put(1, NAME, JobStatus.RUNNING)
    return grid


@every_transport
async def test_a_log_is_read_line_by_line_to_its_end(served: Grid, transport: str) -> None:
    await push_log(served.provider, 1, 0, b"first\r\n\n w\xc3\xb6rld\xff\x00\nla")
    await push_log(served.provider, 1, 20, b"st", final=True)
    answers = [answer async for answer in stream(served, transport, read_request().SerializeToString())]
    parsed = [ReadResponse.FromString(answer) for answer in answers]
    assert [one.data for one in parsed] == [b"first", b"", b" w\xc3\xb6rld\xff\x00", b"last"]
    assert all(abs(one.timestamp / 1e9 - time.time()) < 300 for one in parsed), "unix nanoseconds"


@every_transport
async def test_a_reader_follows_what_is_written(served: Grid, transport: str) -> None:
    await push_log(served.provider, 1, 0, b"one\ntw")
    found = stream(served, transport, read_request().SerializeToString())
    async with asyncio.timeout(WITHIN_S):
        assert await one_line(found) == b"one"
        await push_log(served.provider, 1, 6, b"o\n")
        assert await one_line(found) == b"two"
        await push_log(served.provider, 1, 8, b"", final=True)
        with pytest.raises(StopAsyncIteration):
            await anext(found)


@every_transport
async def test_a_log_is_read_before_the_block_of_its_job(
    served: Grid, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(methods, "ASK_CHAIN_S", 0.05)
    compat = served.compat
    monkeypatch.setattr(compat, "limits", replace(compat.limits, job_within_s=WITHIN_S))
    found = stream(served, transport, read_request(2).SerializeToString())
    async with asyncio.timeout(WITHIN_S):
        first = asyncio.create_task(one_line(found))
        await until(lambda: _held(compat))
        served.chain.put(2, NAME, JobStatus.RUNNING)
        await push_log(served.provider, 2, 0, b"there\n", final=True)
        assert await first == b"there"


@every_transport
async def test_a_signer_cannot_wait_for_many_jobs(
    served: Grid, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compat = served.compat
    monkeypatch.setattr(compat, "limits", replace(compat.limits, job_within_s=WITHIN_S))
    streams = [stream(served, transport, read_request(one).SerializeToString()) for one in (5, 6)]
    waiting = [asyncio.create_task(one_line(one)) for one in streams]
    await until(lambda: _held(compat, 2))
    assert await end_of(served, transport, read_request(7).SerializeToString()) == (5, "there is no job 7")
    for task in waiting:
        task.cancel()


async def _held(compat: CompatContext, least: int = 1) -> bool:
    return compat.awaited_jobs.all_held >= least


@every_transport
async def test_an_empty_log_waits_and_a_new_claim_goes_on(served: Grid, transport: str) -> None:
    found = stream(served, transport, read_request().SerializeToString())
    async with asyncio.timeout(WITHIN_S):
        first = asyncio.create_task(one_line(found))
        await until(lambda: waits(served, 1))
        await push_log(served.provider, 1, 0, b"of the first claim\nno end")
        assert await first == b"of the first claim"
        served.chain.put(1, NAME, provider=ACCOUNTS["other_provider"].address, claimed_at=9)
        await push_log(served.other_provider, 1, 0, b"of the second\n", final=True)
        assert [await one_line(found), await one_line(found)] == [b"no end", b"of the second"]
        with pytest.raises(StopAsyncIteration):
            await anext(found)


@every_transport
async def test_a_line_without_end_comes_in_parts(served: Grid, transport: str) -> None:
    text = b"x" * (2 * LONGEST_LINE_BYTES + 10)
    await push_log(served.provider, 1, 0, text + b"\n" + b"short", final=True)
    assert await lines_of(served, transport) == [
        text[:LONGEST_LINE_BYTES], text[:LONGEST_LINE_BYTES], text[:10], b"short"
    ]  # fmt: skip


@every_transport
async def test_many_lines_arrive_in_order(served: Grid, transport: str) -> None:
    lines = [f"line {number}".encode() for number in range(5000)]
    await push_log(served.provider, 1, 0, b"\n".join(lines) + b"\n", final=True)
    assert await lines_of(served, transport) == lines


@every_transport
@pytest.mark.parametrize("v_offset", [0, 27])
@pytest.mark.parametrize("unit", ["ms", "s"])
async def test_signatures_of_both_clients_are_taken(served: Grid, transport: str, v_offset: int, unit: str) -> None:
    await push_log(served.provider, 1, 0, b"all\n", final=True)
    timestamp = now_ms() // (1 if unit == "ms" else 1000)
    request = read_request(timestamp=timestamp, v_offset=v_offset)
    assert await lines_of(served, transport, request) == [b"all"]
    assert await lines_of(served, transport, request) == [b"all"], "a signature opens several streams"


@every_transport
async def test_a_stranger_is_not_authenticated(served: Grid, transport: str) -> None:
    await push_log(served.provider, 1, 0, b"mine\n", final=True)
    code, sentence = await end_of(served, transport, read_request(name="rival").SerializeToString())
    assert (code, sentence) == (16, "only its customer reads the log of job 1")
    forged = read_request()
    forged.signed_hash = read_request(name="rival").signed_hash
    assert (await end_of(served, transport, forged.SerializeToString()))[0] == 16
    for off_s in (-601, 700):  # the clock advances until the request arrives
        old = read_request(timestamp=now_ms() + 1000 * off_s)
        code, sentence = await end_of(served, transport, old.SerializeToString())
        assert (code, sentence) == (16, "the request was signed more than 600 s off the service's clock")


@every_transport
async def test_other_failures_have_their_status_and_a_sentence(served: Grid, transport: str) -> None:
    assert await end_of(served, transport, read_request(7).SerializeToString()) == (5, "there is no job 7")
    assert (await end_of(served, transport, read_request(2**255).SerializeToString()))[0] == 5
    served.chain.down = True
    answer = await end_of(served, transport, read_request().SerializeToString())
    assert answer == (14, "the chain does not answer at the moment")
    code, sentence = await end_of(served, transport, b"", "Write")
    assert code == 12
    assert "providers only" in sentence
    assert (await end_of(served, transport, b"", "Rewrite"))[0] == 12


@every_transport
async def test_the_list_has_only_ones_own_logs(served: Grid, transport: str) -> None:
    served.chain.put(2, NAME, JobStatus.RUNNING)
    served.chain.put(3, NAME, JobStatus.RUNNING, customer=ACCOUNTS["rival"].address)
    await push_log(served.provider, 1, 0, b"x")
    await push_log(served.provider, 3, 0, b"x")
    for lower in (True, False):
        lists = stream(served, transport, list_request(lower=lower).SerializeToString(), "WatchList")
        assert await one_list(lists) == [log_name(1)]
        await lists.aclose()
    lists = stream(served, transport, list_request().SerializeToString(), "WatchList")
    assert await one_list(lists) == [log_name(1)]
    await push_log(served.provider, 2, 0, b"x")
    async with asyncio.timeout(WITHIN_S):
        while await one_list(lists) != [log_name(1), log_name(2)]:
            pass
    await lists.aclose()


@every_transport
async def test_the_clients_time_limit_ends_a_quiet_stream(served: Grid, transport: str) -> None:
    with pytest.raises(Ended) as ended:
        async for _ in stream(served, transport, read_request().SerializeToString(), timeout=0.5):
            pass
    assert ended.value.code == 4
    await until(lambda: nobody_waits(served))


@every_transport
async def test_a_reader_that_leaves_is_forgotten(served: Grid, transport: str) -> None:
    await push_log(served.provider, 1, 0, b"one\n")
    found = stream(served, transport, read_request().SerializeToString())
    assert await one_line(found) == b"one"
    assert await waits(served, 1)
    await found.aclose()
    await until(lambda: nobody_waits(served))


async def test_the_standard_health_service_answers(served: Grid) -> None:
    assert served.grpc is not None
    async with aio.insecure_channel(served.grpc) as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        for service in ("", "logger.v1alpha1.LoggerAPI"):
            answer = await check(HealthCheckRequest(service=service).SerializeToString(), timeout=WITHIN_S)
            assert HealthCheckResponse.FromString(answer).status == HealthCheckResponse.SERVING
        with pytest.raises(aio.AioRpcError) as error:
            await check(HealthCheckRequest(service="other").SerializeToString(), timeout=WITHIN_S)
        assert error.value.code().name == "NOT_FOUND"
        watch = channel.unary_stream("/grpc.health.v1.Health/Watch")(b"", timeout=WITHIN_S)
        assert HealthCheckResponse.FromString(await watch.read()).status == HealthCheckResponse.SERVING
        watch.cancel()


async def one_line(found: object) -> bytes:
    return ReadResponse.FromString(await anext(found)).data  # type: ignore[call-overload,no-any-return]


async def one_list(found: object) -> list[str]:
    return list(WatchListResponse.FromString(await anext(found)).log_names)  # type: ignore[call-overload]


async def nobody_waits(grid: Grid) -> bool:
    return not await waits(grid, 1)
