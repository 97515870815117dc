"""Session keys in the wrong hands."""

from __future__ import annotations

import pytest

from tests.attacks.http_support import DEFINITION_HASH, REQUESTS, STORED, UPLOAD, UPLOAD_BODY, ask, person, rows
from tests.services.support import ACCOUNTS, DOMAIN, Grid, session_key

MAY_READ = ("read", "releases", "file")


async def _prepare(grid: Grid) -> None:
    """Create a job of the customer and upload its definition."""
    grid.chain.put(1, DEFINITION_HASH.decode())
    async with person("127.0.0.1") as client:
        assert (await ask(client, grid, ACCOUNTS["customer"], "PUT", UPLOAD, UPLOAD_BODY)).status_code == 204


@pytest.mark.parametrize("name", ["customer", "provider", "operator"])
@pytest.mark.attack(
    "sends every request with a stolen session key that may read", attacker="an attacker with a session key",
    gain="logs, releases, files without their secrets, and tags of that customer, for at most 12 hours",
    defence="a session key does only what its rights name; it is revocable, and ends by itself",
)  # fmt: skip
async def test_a_stolen_session_key_only_reads(grid: Grid, name: str) -> None:
    await _prepare(grid)
    for number, (request_name, (method, path, body)) in enumerate(REQUESTS.items()):
        before = await rows(grid, *STORED)
        path = path.replace("wait=20", "wait=0")
        headers = session_key(name, "read").headers(DOMAIN, method, path, body, int(grid.clock()))
        async with person(f"127.0.6.{number + 1}") as client:
            answer = await client.request(method, grid.url + path, content=body, headers=headers)
        if name == "customer" and request_name in MAY_READ:
            assert answer.status_code == 200, request_name
            continue
        assert answer.status_code in (403, 404), (request_name, answer.text)
        assert await rows(grid, *STORED) == before, request_name


@pytest.mark.attack(
    "makes a customer's browser sign requests of another page", attacker="a web page", gain="a refusal",
    defence="a session names its origin, and the browser names the page's",
)  # fmt: skip
async def test_a_session_key_serves_one_origin(grid: Grid) -> None:
    await _prepare(grid)
    before = await rows(grid, *STORED)
    for request_name in ("upload", *MAY_READ):
        method, path, body = REQUESTS[request_name]
        key = session_key(origin="https://grid.example")
        headers = key.headers(DOMAIN, method, path, body, int(grid.clock()))
        async with person("127.0.6.6") as client:
            answer = await client.request(
                method, grid.url + path, content=body, headers={**headers, "Origin": "https://evil.example"}
            )
        assert answer.status_code == 403, request_name
        assert await rows(grid, *STORED) == before, request_name
