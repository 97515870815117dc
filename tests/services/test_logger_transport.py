"""TLS, proxies, pages of other origins, a taken port, and the end of the service."""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
from pathlib import Path

import grpc
import httpx
import pytest
from grpc import aio

from deepgrid.errors import ConfigurationError
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.admission import Proxies
from deepgrid.services.logger_api.grpc_server import host_of
from tests.services.logger_support import PATH, TRANSPORTS, WITHIN_S, end_of, read_request
from tests.services.support import Start, eventually, waits

NAME = "0" * 64


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
    await eventually(lambda: waits(grid, 1))
    grid.context.hub.stop()
    assert await reading == (14, "the service stops; try again")
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
        await eventually(lambda: waits(grid, 1))
        assert list(grid.context.admission.followers_by_address._held) == ["10.1.1.1"]
        call.cancel()


@pytest.mark.parametrize(
    ("peer", "host"), [("ipv4:10.0.0.1:5555", "10.0.0.1"), ("ipv6:%5B2001:db8::1%5D:5555", "2001:db8::1"),
                       ("ipv6:%5Bfe80::1%25eth0%5D:1", "fe80::1"), ("unix:", ""), ("", "")]
)  # fmt: skip
def test_the_host_of_a_peer(peer: str, host: str) -> None:
    assert host_of(peer) == host
    assert host not in Proxies(())
