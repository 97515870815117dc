"""Hostile requests get a sentence and a status, quickly, and never a traceback."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from typing import Any

import httpx
import pytest
from graphql import get_introspection_query

from deepgrid.compat.graphql import documents
from deepgrid.services.messages import MAX_UPLOAD_BODY_BYTES
from tests.compat.graphql.hostile import FRAGMENTS, HOSTILE
from tests.compat.graphql.support import JSON, SUBMIT, ask, job_with, post
from tests.services.support import Grid

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_request_is_refused_with_a_sentence(
    grid: Grid, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        answer = await post(grid, HOSTILE[name])
    assert answer.status_code == 422, answer.text[:300]
    errors = answer.json()["errors"]
    assert errors
    assert all(0 < len(entry["message"]) < 600 for entry in errors)
    assert "Traceback" not in answer.text + caplog.text
    assert (await ask(grid, "{ __typename }"))["data"] == {"__typename": "Query"}, "the service goes on"


@pytest.mark.parametrize(("doublings", "what"), [(100, "nested deeper than 64 levels"), (10, "more than 400 fields")])
async def test_fragments_count_at_each_use(grid: Grid, doublings: int, what: str) -> None:
    text = "".join(FRAGMENTS[:doublings]) + f"fragment F{doublings} on Query {{ __typename }} {{ ...F0 }}"
    answer = await post(grid, {"query": text})
    assert answer.status_code == 422
    assert what in answer.json()["errors"][0]["message"]


async def test_fragments_within_reason_are_answered(grid: Grid) -> None:
    text = "".join(FRAGMENTS[:5]) + "fragment F5 on Query { __typename } { ...F0 }"
    assert (await ask(grid, text))["data"] == {"__typename": "Query"}


async def test_the_largest_accepted_input_does_not_stop_the_service(grid: Grid) -> None:
    """Other requests are answered while a stranger's job is checked."""
    nested = [{}] * (documents.MOST_OBJECTS - 10)
    slow = asyncio.create_task(post(grid, {"query": SUBMIT, "variables": {"job": job_with(steps=[{"steps": nested}])}}))
    longest = 0.0
    async with httpx.AsyncClient() as client:
        while not slow.done():
            started = time.monotonic()
            assert (await client.get(grid.url + "/health")).text == "ok"
            longest = max(longest, time.monotonic() - started)
            await asyncio.sleep(0.25)  # within the rate of strangers
    assert "must not have more than 1000 steps" in (await slow).text
    assert longest < 30


async def test_a_huge_body_is_refused_before_it_arrives(grid: Grid) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", httpx.URL(grid.url).port)
    head = "POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {100 * 1024**2}\r\n\r\n"
    writer.write(head.encode() + b"{")
    answer = await asyncio.wait_for(reader.readuntil(b"}]}"), 30)
    assert b"413" in answer
    assert f"larger than {MAX_UPLOAD_BODY_BYTES} bytes".encode() in answer
    writer.close()


async def test_a_huge_body_of_unknown_length_is_cut_off(grid: Grid) -> None:
    async def endless() -> Any:
        for _ in range(100):
            yield b" " * 1024**2

    async with httpx.AsyncClient() as client:
        try:
            answer = await client.post(grid.url + "/graphql", content=endless(), headers=JSON)
            assert answer.status_code == 413
        except httpx.TransportError:
            return  # the service closed the connection while the client was writing


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_other_methods_are_refused(grid: Grid, method: str) -> None:
    async with httpx.AsyncClient() as client:
        assert (await client.request(method, grid.url + "/graphql", json={"query": "{a}"})).status_code == 405


async def test_queries_are_not_taken_from_addresses(grid: Grid) -> None:
    async with httpx.AsyncClient() as client:
        answer = await client.get(grid.url + "/graphql", params={"query": "{__typename}"})
        assert answer.status_code == 405
        assert "body" in answer.json()["error"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
async def test_only_json_is_read(grid: Grid, kind: str) -> None:
    answer = await post(grid, json.dumps({"query": "{__typename}"}).encode(), {"Content-Type": kind})
    assert answer.status_code == 415


async def test_naming_a_known_signer_lifts_no_limit(grid: Grid) -> None:
    answer = await post(grid, {"query": "{__typename}"}, {"X-Grid-Address": "0x" + "1" * 40})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["message"] == "GraphQL requests are not signed"


async def test_tools_can_read_the_schema(grid: Grid) -> None:
    found = await ask(grid, get_introspection_query())
    assert {"Job", "Module", "StepUse"} <= {kind["name"] for kind in found["data"]["__schema"]["types"]}
