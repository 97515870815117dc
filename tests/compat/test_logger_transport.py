"""Proxies, pages of other origins, a taken port, and the end of the service."""

from __future__ import annotations

import asyncio
import logging
import socket
from pathlib import Path

import httpx
import pytest
from grpc import aio
from h2.config import H2Configuration
from h2.connection import H2Connection

from deepgrid.compat.compat_context import CompatLimits, CompatSettings
from deepgrid.compat.logger_api import serving_grpc
from deepgrid.errors import ConfigurationError
from deepgrid.lifecycle.states import JobStatus
from tests.compat.logger_support import PATH, TRANSPORTS, WITHIN_S, end_of, read_request
from tests.services.support import Start, waits
from tests.waiting import until

NAME = "0" * 64
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


async def test_a_taken_port_is_a_clear_error(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"The services cannot listen at 127.0.0.1:{port}"):
            await start(grpc_port=port)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_readers_are_told_when_the_service_stops(
    start: Start, transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    grid = await start(grpc_port=0)
    grid.chain.put(1, NAME, JobStatus.RUNNING)
    reading = asyncio.create_task(end_of(grid, transport, read_request().SerializeToString()))
    await until(lambda: waits(grid, 1))
    grid.context.log_tails.stop()
    assert await reading == (14, "the service stops")
    assert not [record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR]


async def test_pages_of_any_origin_may_call_the_log_service_only(start: Start) -> None:
    grid = await start()
    asks = {
        "origin": "https://page.example", "access-control-request-method": "POST",
        "access-control-request-headers": "content-type,grpc-timeout,x-grpc-web,x-user-agent",
    }  # fmt: skip
    async with httpx.AsyncClient() as client:
        answer = await client.options(grid.url + PATH + "Read", headers=asks)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "*")
        assert answer.headers["access-control-max-age"] == "1728000"
        assert "x-grpc-web" in answer.headers["access-control-allow-headers"]
        assert "access-control-allow-credentials" not in answer.headers
        posted = await client.post(grid.url + PATH + "Read", headers={"origin": "https://page.example"})
        assert posted.headers["access-control-allow-origin"] == "*"
        assert posted.headers["access-control-expose-headers"] == "grpc-status, grpc-message"
        other = await client.options(grid.url + "/v1/jobs/1/log", headers=asks)
        assert "access-control-allow-origin" not in other.headers


async def test_the_proxy_names_the_source(start: Start) -> None:
    grid = await start(grpc_port=0)
    grid.chain.put(1, NAME, JobStatus.RUNNING)
    async with aio.insecure_channel(str(grid.grpc)) as channel:
        call = channel.unary_stream(PATH + "Read")(
            read_request().SerializeToString(), metadata=(("x-forwarded-for", "10.9.9.9, 10.1.1.1"),)
        )
        await until(lambda: waits(grid, 1))
        assert "10.1.1.1" in grid.compat.admission.strangers._levels
        call.cancel()


async def test_a_unix_socket_serves_the_proxy(start: Start, tmp_path: Path) -> None:
    grid = await start(compat=CompatSettings(limits=CompatLimits(job_within_s=0.1)))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "grpc.sock"))
        listener.listen()
        listener.setblocking(False)
        async with (
            serving_grpc(grid.compat, listener),
            aio.insecure_channel(f"unix:{tmp_path}/grpc.sock") as channel,
        ):
            for headers in ((("x-forwarded-for", "10.1.1.1"),), None):
                call = channel.unary_stream(PATH + "Read")
                found = call(read_request(7).SerializeToString(), timeout=WITHIN_S, metadata=headers)
                assert (await found.code()).name == "NOT_FOUND"


@pytest.mark.parametrize(
    "headers", [{"te": ""}, {":method": "GET"}, {"content-type": "x"}, {"odd-bin": "*"}, {"odd": "\u00e9"},
                {"grpc-timeout": "9" * 400 + "m"}],
)  # fmt: skip
async def test_odd_headers_leave_no_traceback(
    start: Start, headers: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """A proxy forwards them. There each has its own connection."""
    grid = await start(grpc_port=0)
    host, _, port = str(grid.grpc).rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    client = H2Connection(H2Configuration(client_side=True, validate_outbound_headers=False))
    client.initiate_connection()
    usual = {":method": "POST", ":scheme": "http", ":path": PATH + "Read", ":authority": "x", "te": "trailers",
             "content-type": "application/grpc"}  # fmt: skip
    client.send_headers(1, list((usual | headers).items()), end_stream=True)
    writer.write(client.data_to_send())
    writer.write_eof()
    await asyncio.wait_for(reader.read(), WITHIN_S)
    writer.close()
    assert not [record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR]
