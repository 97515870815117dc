"""Pages of other origins may use `/graphql` only. The playground asks no other host."""

from __future__ import annotations

import base64
import hashlib
import re

import httpx
import pytest

from deepgrid.services.admission import Limits, Rate
from tests.compat.graphql.support import post
from tests.services.support import Grid, Start

pytestmark = pytest.mark.asyncio(loop_scope="module")
ORIGIN = {"Origin": "https://app.example"}
PREFLIGHT = {**ORIGIN, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}


@pytest.mark.parametrize("origin", ["https://app.example", "http://localhost:8080"])
async def test_pages_of_any_origin_may_submit(grid: Grid, origin: str) -> None:
    async with httpx.AsyncClient() as client:
        allowed = await client.options(grid.url + "/graphql", headers={**PREFLIGHT, "Origin": origin})
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-origin"] == origin
    assert set(allowed.headers["access-control-allow-methods"].split(", ")) == {
        "GET",
        "POST",
        "PUT",
        "DELETE",
        "OPTIONS",
    }
    assert {"Accept", "Content-Type"} <= set(allowed.headers["access-control-allow-headers"].split(", "))
    assert allowed.headers["access-control-max-age"] == "300"
    assert "access-control-allow-credentials" not in allowed.headers
    answer = await post(grid, {"query": "{__typename}"}, {"Origin": origin})
    assert answer.headers["access-control-allow-origin"] == origin
    assert "access-control-allow-credentials" not in answer.headers


async def test_other_origins_and_headers_are_not_allowed(grid: Grid) -> None:
    async with httpx.AsyncClient() as client:
        for change in (
            {"Origin": "null"},
            {"Origin": "file://x"},
            {"Access-Control-Request-Headers": "x-grid-address"},
        ):
            answer = await client.options(grid.url + "/graphql", headers=PREFLIGHT | change)
            assert answer.status_code == 400


@pytest.mark.parametrize("path", ["/v1/health", "/v1/jobs/1/notices", "/health", "/", "/graphql/", "/graphqlx"])
async def test_nothing_else_is_for_other_origins(grid: Grid, path: str) -> None:
    async with httpx.AsyncClient() as client:
        for answer in (
            await client.get(grid.url + path, headers=ORIGIN),
            await client.options(grid.url + path, headers=PREFLIGHT),
        ):
            assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.asyncio(loop_scope="function")
async def test_pages_can_read_refusals(start: Start) -> None:
    grid = await start(limits=Limits(strangers_per_address=Rate(0.001, 1)))
    for status in (200, 429):
        answer = await post(grid, {"query": "{__typename}"}, ORIGIN)
        assert answer.status_code == status
        assert answer.headers["access-control-allow-origin"] == ORIGIN["Origin"]


@pytest.mark.parametrize("path", ["/", "/graphql"])
async def test_the_playground_asks_no_other_host(grid: Grid, path: str) -> None:
    async with httpx.AsyncClient() as client:
        page = await client.get(grid.url + path, headers={"Accept": "text/html"})
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert not re.search(r"//|\bsrc=|\bhref=|@import|url\(", page.text)
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "connect-src 'self'" in policy
    for kind in ("script", "style"):
        inline = page.text.split(f"<{kind}>")[1].split(f"</{kind}>")[0]
        digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


async def test_health_is_plain_text(grid: Grid) -> None:
    async with httpx.AsyncClient() as client:
        answer = await client.get(grid.url + "/health")
    assert (answer.status_code, answer.text) == (200, "ok")
    assert answer.headers["content-type"].startswith("text/plain")
