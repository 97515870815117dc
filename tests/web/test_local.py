"""`dps web`: one server on loopback that signs, forwards signed requests unchanged, and stops at once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import stat
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from deepgrid.signer.access import NO_SESSION
from tests.chain.grid import Grid, running_grid

EXAMPLES = Path(__file__).parents[2] / "examples"
DPS = Path(sys.executable).with_name("dps")
TOKEN = re.compile(r"(http://127\.[\d.]+:\d+)/#token=([\w-]+)")
STOPS_WITHIN_S = 20  # it takes about a second
HELD = b"/v1/jobs/1/log?wait=25"


@dataclass
class Services:
    """Answers each request with its own bytes; holds a poll of the log until it is closed."""

    url: str = ""
    seen: list[bytes] = field(default_factory=list)
    holds: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head.lower())
            whole = head + await reader.readexactly(int(length[1]) if length else 0)
            self.seen.append(whole)
            if HELD in head:
                self.holds.set()
                await reader.read()
            body = b"a line\x1b[31m\xff"
            writer.write(b"HTTP/1.1 409 Conflict\r\nX-Log-Offset: 7\r\nSet-Cookie: a=b\r\n")
            writer.write(b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
        writer.close()


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    with running_grid(tmp_path_factory.mktemp("local")) as grid:
        yield grid


@pytest.fixture
async def services() -> AsyncIterator[Services]:
    one = Services()
    server = await asyncio.start_server(one.answer, "127.0.0.1", 0)
    one.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield one
    server.close()


@pytest.fixture
async def web(grid: Grid, services: Services, tmp_path: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run `dps web` for a new key, with its output in a pipe."""
    wallet = grid.new_key(f"web{tmp_path.name}")
    book = grid.book.model_copy(update={"definitions_url": services.url, "logs_url": services.url})
    file = book.save(tmp_path / "grid.json")
    process = await asyncio.create_subprocess_exec(
        DPS, "web", "--port", "0", "--key", str(wallet.key_file), "--book", str(file),
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    yield process
    if process.returncode is None:
        process.kill()
        await process.wait()


async def address(web: asyncio.subprocess.Process) -> tuple[str, str]:
    """Return the next printed address and its token."""
    assert web.stdout is not None
    async with asyncio.timeout(60):
        line = (await web.stdout.readline()).decode()
    found = TOKEN.search(line)
    assert found is not None, line
    return found[1], found[2]


async def test_the_printed_address_opens_the_signer_once(web: asyncio.subprocess.Process) -> None:
    url, token = await address(web)
    async with httpx.AsyncClient(base_url=url, headers={"Origin": url}, trust_env=False) as page:
        session = (await page.post("/signer/session", json={"token": token})).json()["session"]
        call = {"method": "eth_accounts", "params": []}
        answer = await page.post("/signer", json=call, headers={"X-Grid-Signer": session})
        assert len(answer.json()["result"]) == 1
        assert (await page.post("/signer/session", json={"token": token})).status_code == 403
    assert (await address(web))[1] != token


async def test_signed_requests_reach_the_services_unchanged(
    web: asyncio.subprocess.Process, services: Services
) -> None:
    url, _ = await address(web)
    path = "/v1/definitions/a%2Fb?x=1&y=%20"
    headers = {"X-Grid-Signature": "0x12", "Cookie": "other=secret", "X-Grid-Signer": "secret", "Origin": url}
    async with httpx.AsyncClient(base_url=url, trust_env=False) as page:
        answer = await page.put(path, content=b'{ "a":1 }', headers=headers)
    assert (answer.status_code, answer.content, answer.headers["x-log-offset"]) == (409, b"a line\x1b[31m\xff", "7")
    assert "set-cookie" not in answer.headers
    head, body = services.seen[0].split(b"\r\n\r\n")
    assert head.startswith(f"PUT {path} HTTP/1.1\r\n".encode())
    assert b"x-grid-signature: 0x12" in head.lower()
    assert body == b'{ "a":1 }'
    assert b"secret" not in head
    assert f"origin: {url}".encode() in head.lower()  # which the session of the page names


async def test_the_page_checks_files_with_modules_for_its_user_only(
    web: asyncio.subprocess.Process,
) -> None:
    url, token = await address(web)
    body = {"file": (EXAMPLES / "module.yaml").read_text().replace("./modules", str(EXAMPLES / "modules"))}
    async with httpx.AsyncClient(base_url=url, headers={"Origin": url}, trust_env=False, timeout=120) as page:
        assert (await page.post("/v1/check", json=body)).status_code == 401
        page.headers["X-Grid-Signer"] = (await page.post("/signer/session", json={"token": token})).json()["session"]
        answer = await page.post("/v1/check", json=body)
        assert answer.status_code == 200, answer.text
        assert answer.json()["faults"] == []
        assert "Ada Lovelace" in answer.json()["definition"]


async def test_pages_and_grid_need_no_session(web: asyncio.subprocess.Process, grid: Grid) -> None:
    url, _ = await address(web)
    async with httpx.AsyncClient(base_url=url, trust_env=False) as page:
        assert (await page.get("/")).status_code in (200, 503)  # 503: there is no build
        told = (await page.get("/v1/grid")).json()
        assert (told["local"], told["modules"], told["chain_id"]) == (True, True, grid.book.chain_id)


async def test_the_chain_is_read_for_a_session_only(web: asyncio.subprocess.Process) -> None:
    url, token = await address(web)
    asked = {"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []}
    async with httpx.AsyncClient(base_url=url, headers={"Origin": url}, trust_env=False) as page:
        for headers in ({}, {"X-Grid-Signer": "1"}):
            answer = await page.post("/rpc", json=asked, headers=headers)
            assert (answer.status_code, answer.json()) == (401, {"error": NO_SESSION})
        page.headers["X-Grid-Signer"] = (await page.post("/signer/session", json={"token": token})).json()["session"]
        assert int((await page.post("/rpc", json=asked)).json()["result"], 16) > 0


async def test_a_name_that_was_rebound_reaches_nothing(web: asyncio.subprocess.Process, services: Services) -> None:
    url, _ = await address(web)
    async with httpx.AsyncClient(base_url=url, trust_env=False) as page:
        for path in ("/", "/signer", "/v1/health"):
            assert (await page.get(path, headers={"Host": "grid.example"})).status_code == 421
            assert (await page.post(path, headers={"Origin": "http://grid.example"})).status_code == 403
    assert services.seen == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_stops_at_once_while_a_log_is_polled(
    web: asyncio.subprocess.Process, services: Services, number: signal.Signals
) -> None:
    url, _ = await address(web)
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as page:
        poll = asyncio.create_task(page.get(HELD.decode()))
        await services.holds.wait()
        web.send_signal(number)
        async with asyncio.timeout(STOPS_WITHIN_S):
            _, errors = await web.communicate()
        await asyncio.gather(poll, return_exceptions=True)
    assert web.returncode == 0, errors
    assert b"Traceback" not in errors, errors


async def test_the_address_is_kept_in_a_private_file(grid: Grid, services: Services, tmp_path: Path) -> None:
    file = tmp_path / "address"
    book = grid.book.model_copy(update={"definitions_url": services.url}).save(tmp_path / "grid.json")
    process = await asyncio.create_subprocess_exec(
        DPS, "web", "--port", "0", "--key", str(grid.new_key(f"file{tmp_path.name}").key_file), "--book", str(book),
        "--address-file", str(file), env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    async with asyncio.timeout(60):
        while not file.exists():
            await asyncio.sleep(0.05)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    found = TOKEN.search(file.read_text())
    process.terminate()
    printed, _ = await process.communicate()
    assert found is not None
    assert found[2].encode() not in printed
