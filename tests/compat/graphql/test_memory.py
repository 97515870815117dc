"""Hostile queries, repeated and many at once, do not make the services' process grow."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from deepgrid.services.messages import MAX_UPLOAD_BODY_BYTES
from tests.compat.graphql.hostile import HOSTILE
from tests.compat.graphql.support import JSON, SUBMIT, job_with

AT_ONCE, ROUNDS = 8, 4
MOST_PEAK_MB, MOST_GROWTH_MB = 128, 48  # above a process that has answered each once
SIZE = MAX_UPLOAD_BODY_BYTES - 4096
FILLED = {  # as large as a body may be
    "lists": b'{"query": "{__typename}", "variables": {"a": [' + b"[]," * (SIZE // 3) + b"1]}}",
    "objects": b'{"query": "{__typename}", "variables": {"a": [' + b"{}," * (SIZE // 3) + b"1]}}",
    "keys": b'{"query": "{__typename}"' + b"".join(b',"%x":1' % n for n in range(SIZE // 9)) + b"}",
    "numbers": b'{"query": "{__typename}", "variables": {"a": [' + b"0.5," * (SIZE // 4) + b"1]}}",
    "a query": json.dumps({"query": "{" + "a " * (SIZE // 2) + "}"}).encode(),
    "a string": json.dumps({"query": SUBMIT, "variables": {"job": job_with(x="\U0001f600" * (SIZE // 12))}}).encode(),
    "a command": json.dumps(
        {"query": SUBMIT, "variables": {"job": job_with(steps=[{"run": {"command": "a" * (SIZE // 2)}}])}}
    ).encode(),
}


class Services:
    """A process of the services."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.url = process.stdout.readline().strip()
        self._status = Path(f"/proc/{process.pid}/status")

    def mb(self, kind: str) -> float:
        """Return megabytes: `VmRSS` now, or `VmHWM` at most so far."""
        return int(self._status.read_text().split(f"{kind}:")[1].split()[0]) / 1024


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    argv = [sys.executable, "-m", "tests.compat.graphql.alone", str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Services(process)
        finally:
            process.kill()


@pytest.mark.long
async def test_hostile_queries_do_not_grow_the_services(services: Services) -> None:
    bodies = [body if isinstance(body, bytes) else json.dumps(body).encode() for body in HOSTILE.values()]
    bodies += FILLED.values()
    turns = asyncio.Semaphore(AT_ONCE)

    async def send(client: httpx.AsyncClient, body: bytes) -> None:
        async with turns:
            answer = await client.post(services.url + "/graphql", content=body, headers=JSON)
        assert answer.status_code in (200, 422), answer.text[:300]
        assert answer.json()["errors"]

    async with httpx.AsyncClient(timeout=120) as client:
        await asyncio.gather(*(send(client, body) for body in bodies))
        first = services.mb("VmRSS")
        for _ in range(ROUNDS):
            await asyncio.gather(*(send(client, body) for body in bodies))
    assert services.mb("VmRSS") - first < MOST_GROWTH_MB
    assert services.mb("VmHWM") - first < MOST_PEAK_MB
