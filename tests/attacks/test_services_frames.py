"""HTTP/2 frames that carry no request: the proxy handles them, and the services do not notice."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import StreamEnded, StreamReset

from deepgrid.compat.compat_context import CompatLimits, CompatSettings
from deepgrid.services.admission import Limits
from deepgrid.services.edge.proxy_file import EdgeLimits
from tests.attacks.http_support import PATIENCE_S, person
from tests.compat.logger_support import PATH, end_of, read_request
from tests.services.support import Start
from tests.waiting import until

MOST_BYTES = 64 * 1024 * 1024
FRAMES = {
    "PING": b"\0\0\x08\x06\0\0\0\0\0" + bytes(8),
    "SETTINGS": b"\0\0\0\x04\0\0\0\0\0",
    "WINDOW_UPDATE": b"\0\0\x04\x08\0\0\0\0\0\0\0\0\x01",
    "PRIORITY": b"\0\0\x05\x02\0\0\0\0\x01\0\0\0\0\x10",
    "an empty DATA frame": b"\0\0\0\0\0\0\0\0\x01",
    "RST_STREAM": b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x08",
    "an unknown frame": b"\0\0\0\xfa\0\0\0\0\0",
}


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.attack(
    "a connection of HTTP/2 with control frames and no request", attacker="a stranger with HTTP",
    gain="a connection of the proxy until its limit of frames without a request",
    defence="the proxy ends the connection, and hands no frame on",
)  # fmt: skip
async def test_control_frames_end_at_the_proxy(start: Start, frame: str) -> None:
    grid = await start(edge=EdgeLimits())
    host, _, port = str(grid.grpc).rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port), local_addr=("127.0.6.6", 0))
    client = H2Connection(H2Configuration(client_side=True))
    client.initiate_connection()
    writer.write(client.data_to_send())
    ended, sent = asyncio.create_task(reader.read()), 0
    with contextlib.suppress(OSError):
        while not ended.done():
            writer.write(FRAMES[frame] * 500)
            sent += 500 * len(FRAMES[frame])
            assert sent < MOST_BYTES
            await writer.drain()
            await asyncio.sleep(0)
    writer.transport.abort()
    await asyncio.gather(ended, return_exceptions=True)
    assert grid.compat.admission.running.all_held == 0
    async with person("127.0.0.2") as honest:
        assert (await honest.get(f"{grid.url}/v1/health")).status_code == 200


@pytest.mark.attack(
    "calls over gRPC whose request never comes, as many as a connection takes", attacker="a stranger with HTTP",
    gain="streams of the services for 10 s, up to the limit per address",
    defence="requests have a deadline; calls at once are limited per address, and their rate in the proxy",
)  # fmt: skip
async def test_half_open_streams_end_at_their_deadline(start: Start) -> None:
    grid = await start(
        edge=EdgeLimits(),
        limits=Limits(running_per_address=20),
        compat=CompatSettings(limits=CompatLimits(request_within_s=1.0, job_within_s=0.5)),
    )
    host, _, port = str(grid.grpc).rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port), local_addr=("127.0.6.6", 0))
    client = H2Connection(H2Configuration(client_side=True))
    client.initiate_connection()
    head = [(":method", "POST"), (":scheme", "http"), (":path", PATH + "Read"), (":authority", "x")]
    for stream in range(1, 200, 2):
        client.send_headers(stream, [*head, ("content-type", "application/grpc"), ("te", "trailers")])
    writer.write(client.data_to_send())
    most = 0
    async with asyncio.timeout(PATIENCE_S):
        ended = set[int]()
        while len(ended) < 100:
            events = client.receive_data(await reader.read(65536))
            ended.update(event.stream_id for event in events if isinstance(event, StreamEnded | StreamReset))
            most = max(most, grid.compat.admission.running.all_held)
    assert most <= 20
    await until(lambda: grid.compat.admission.running.all_held == 0)
    assert (await end_of(grid, "grpc", read_request().SerializeToString()))[0] == 5, "others are answered"
    writer.transport.abort()
