"""TLS, proxies, pages of other origins, a taken port, and the end of the service."""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import subprocess
from pathlib import Path

import grpc
import httpx
import pytest
from grpc import aio
from h2.config import H2Configuration
from h2.connection import H2Connection

from deepgrid.errors import ConfigurationError
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.admission import Limits
from deepgrid.services.logger_api.http2 import MOST_RESETS
from tests.services.logger_support import PATH, TRANSPORTS, WITHIN_S, end_of, read_request
from tests.services.support import Grid, Start, waits
from tests.waiting import until

NAME = "0" * 64
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A self-signed certificate for localhost, and its key."""
    paths = tmp_path / "cert.pem", tmp_path / "key.pem"
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    argv += ["-keyout", paths[1], "-out", paths[0], "-days", "2", "-subj", "/CN=localhost", "-addext"]
    subprocess.run([*argv, "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    paths[1].chmod(0o600)
    return paths


async def test_with_a_certificate_grpc_speaks_tls_only(start: Start, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    grid = await start(grpc_port=0, tls_cert=cert, tls_key=key)
    grid.chain.put(1, NAME, JobStatus.RUNNING)
    credentials = grpc.ssl_channel_credentials(cert.read_bytes())
    named = (("grpc.ssl_target_name_override", "localhost"),)
    async with aio.secure_channel(str(grid.grpc), credentials, named) as channel:
        call = channel.unary_stream(PATH + "Read")(read_request(7).SerializeToString(), timeout=WITHIN_S)
        assert (await call.code()).name == "NOT_FOUND"
    assert (await end_of(grid, "grpc", read_request().SerializeToString()))[0] == 14, "no clear text"


async def test_a_taken_port_is_a_clear_error(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"The log service cannot listen at 127.0.0.1:{port}"):
            await start(grpc_port=port)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_readers_are_told_when_the_service_stops(
    start: Start, transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    grid = await start(grpc_port=0)
    grid.chain.put(1, NAME, JobStatus.RUNNING)
    reading = asyncio.create_task(end_of(grid, transport, read_request().SerializeToString()))
    await until(lambda: waits(grid, 1))
    grid.context.hub.stop()
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


async def test_a_trusted_proxy_names_the_source(start: Start) -> None:
    grid = await start(grpc_port=0, trusted_proxies=("127.0.0.1",))
    grid.chain.put(1, NAME, JobStatus.RUNNING)
    async with aio.insecure_channel(str(grid.grpc)) as channel:
        call = channel.unary_stream(PATH + "Read")(
            read_request().SerializeToString(), metadata=(("x-forwarded-for", "10.9.9.9, 10.1.1.1, 127.0.0.1"),)
        )
        await until(lambda: waits(grid, 1))
        assert list(grid.context.admission.followers_by_address._held) == ["10.1.1.1"]
        call.cancel()


async def test_connections_of_one_address_are_bounded_and_idle_ones_make_room(start: Start) -> None:
    grid = await start(grpc_port=0, limits=Limits(connections_per_address=2, keep_alive_s=60))
    grid.chain.put(1, NAME, JobStatus.RUNNING)
    host, _, port = str(grid.grpc).rpartition(":")
    idle = [await asyncio.open_connection(host, int(port)) for _ in range(6)]
    for reader, _ in idle[:4]:
        await asyncio.wait_for(reader.read(), WITHIN_S)  # the service hangs up
    assert (await end_of(grid, "grpc", read_request(7).SerializeToString()))[0] == 5, "an idle one made room"
    for _, writer in idle:
        writer.close()


async def test_connections_without_calls_end(start: Start) -> None:
    grid = await start(grpc_port=0, limits=Limits(keep_alive_s=1, head_within_s=1))
    host, _, port = str(grid.grpc).rpartition(":")
    silent, writer = await asyncio.open_connection(host, int(port))
    async with aio.insecure_channel(str(grid.grpc)) as channel:
        await channel.channel_ready()
        await asyncio.wait_for(channel.wait_for_state_change(grpc.ChannelConnectivity.READY), WITHIN_S)
    await asyncio.wait_for(silent.read(), WITHIN_S)
    writer.close()


@pytest.mark.parametrize(
    "sent",
    [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\0" * 1000, PREFACE + b"\0\0\4\1\5\0\0\0\1xxxx",
     PREFACE + b"\xff\xff\xff\0\0\0\0\0\1", PREFACE + b"\0\0\x08\6\0\0\0\0\1" + bytes(8)],
)  # fmt: skip
async def test_other_protocols_and_broken_frames_end_the_connection(
    start: Start, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    grid = await start(grpc_port=0)
    host, _, port = str(grid.grpc).rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(sent)
    await asyncio.wait_for(reader.read(), WITHIN_S)
    writer.close()
    assert not [record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR]


async def test_random_frames_leave_no_traceback(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    grid = await start(grpc_port=0)
    host, _, port = str(grid.grpc).rpartition(":")
    made = random.Random(3)
    for _ in range(60):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(PREFACE + b"\0\0\0\4\0\0\0\0\0")
        for _ in range(20):
            content = made.randbytes(made.randrange(0, 40))
            kind, flags, stream = made.randrange(0, 11), made.choice((0, 1, 4, 5, 8, 0x20)), made.randrange(0, 6)
            writer.write(len(content).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + content)
        writer.write_eof()
        await asyncio.wait_for(reader.read(), WITHIN_S)
        writer.close()
    await until(lambda: nothing_runs(grid))
    assert not [record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR]


async def test_a_client_that_resets_call_after_call_is_hung_up(start: Start) -> None:
    grid = await start(grpc_port=0)
    host, _, port = str(grid.grpc).rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    client = H2Connection(H2Configuration(client_side=True))
    client.initiate_connection()
    for stream in range(1, 2 * MOST_RESETS + 5, 2):
        client.send_headers(stream, [(":method", "POST"), (":scheme", "http"), (":path", PATH + "Read"),
                                     (":authority", "x"), ("content-type", "application/grpc")])  # fmt: skip
        client.reset_stream(stream)
    writer.write(client.data_to_send())
    await asyncio.wait_for(reader.read(), WITHIN_S)
    writer.close()
    await until(lambda: nothing_runs(grid))


async def nothing_runs(grid: Grid) -> bool:
    return grid.context.admission.running.all_held == 0
