"""Servers answer with few bytes that become hundreds of megabytes when they are decompressed."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from eth_account import Account

from deepgrid.cli.access.address_book import _logs_url
from deepgrid.client.engine.live import _fetch_places
from deepgrid.errors import ServiceError
from deepgrid.provider.shared.image_registry import Registries
from deepgrid.services.client import ServicesClient
from deepgrid.workflow.models import ContainerRun
from tests.services.support import DOMAIN

MIB = 1024**2
BOMB = gzip.compress(gzip.compress(bytes(256 * MIB)))


class Bomb(BaseHTTPRequestHandler):
    """Answers everything with two codings. Each makes the answer larger."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Encoding", "gzip, gzip")
        self.send_header("Content-Length", str(len(BOMB)))
        self.end_headers()
        self.wfile.write(BOMB)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Bomb)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


async def read_log(url: str) -> None:
    async with ServicesClient(url, Account.create(), DOMAIN.chain_id, DOMAIN.verifying_contract) as services:
        await services.read_log(1)


async def read_image(url: str) -> None:
    image = ContainerRun(image="some/image:v1", registry="r.example.org", apptainer=True)
    await Registries(["r.example.org"], {"r.example.org": url}).working_folder(image)


async def probe_logs(url: str) -> None:
    assert await _logs_url(url, "https://jobs.example.org") == "https://jobs.example.org"
    raise ServiceError("the probe of the log service says no more than this")


@pytest.mark.attack(
    "an answer of 1 KB with two codings that becomes 256 MB", attacker="a malicious server",
    gain="an error instead of the answer", defence="answers are not requested compressed, and not decompressed",
)  # fmt: skip
@pytest.mark.parametrize("ask", [read_log, _fetch_places, read_image, probe_logs])
async def test_answers_are_not_decompressed(url: str, ask: Callable[[str], Awaitable[object]]) -> None:
    assert len(BOMB) < 2000
    tracemalloc.start()
    try:
        with pytest.raises(ServiceError):
            await ask(url)
        assert tracemalloc.get_traced_memory()[1] < 64 * MIB
    finally:
        tracemalloc.stop()
