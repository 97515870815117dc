"""Requests that are replayed, have a wrong time, concern jobs of others, or take much memory."""

from __future__ import annotations

import asyncio

import pytest
from eth_account.signers.local import LocalAccount

from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.admission import Limits
from deepgrid.services.edge.proxy_file import EdgeLimits
from deepgrid.services.signing.request_signing import sign
from deepgrid.services.storage.database import UsedNonce
from tests.appending import push_log
from tests.attacks.http_support import (
    DEFINITION_HASH,
    REQUESTS,
    STORED,
    UPLOAD,
    UPLOAD_BODY,
    WHOLE_HEAD,
    ask,
    connect,
    person,
    rows,
    stranger,
)  # fmt: skip
from tests.services.support import ACCOUNTS, DOMAIN, Grid, Start, a_job
from tests.waiting import until


@pytest.mark.parametrize("request_name", list(REQUESTS))
@pytest.mark.attack(
    "sends a signed request again that it has seen", attacker="an attacker on the network path", gain="nothing",
    defence="each nonce is accepted once; refused ones are kept in memory",
)  # fmt: skip
async def test_no_request_is_accepted_twice(grid: Grid, request_name: str) -> None:
    signer = await _authorised(grid, request_name)
    used = await rows(grid, UsedNonce)
    method, path, body = REQUESTS[request_name]
    path = path.replace("wait=20", "wait=0")
    headers = sign(signer, DOMAIN, method, path, body, int(grid.clock()))
    async with person("127.0.6.6") as client:
        asked = [client.request(method, grid.url + path, content=body, headers=headers) for _ in range(2)]
        first, second = [(await one).status_code for one in asked]
    assert first in (200, 201, 204)
    assert second == 401
    assert await rows(grid, UsedNonce) == used + 1


async def _authorised(grid: Grid, request_name: str) -> LocalAccount:
    """Prepare the request. Returns the account that may send it."""
    grid.chain.put(1, DEFINITION_HASH.decode())
    before = {"release": ["upload"], "releases": ["upload"], "file": ["upload"], "mark": ["upload"]}
    before["marks"] = ["upload", "mark"]
    for needed in before.get(request_name, ()):
        async with person("127.0.0.1") as client:
            answer = await ask(client, grid, ACCOUNTS["customer"], *REQUESTS[needed])
            assert answer.status_code == 204
    if request_name in ("tunnel", "invitations"):
        grid.chain.put(1, DEFINITION_HASH.decode(), JobStatus.RUNNING)
    if request_name == "tunnel":  # its supervisor asks for invitations
        async with person("127.0.0.1") as client:
            assert (await ask(client, grid, ACCOUNTS["provider"], *REQUESTS["invitations"])).status_code == 200
    by_provider = ("release", "push", "notice", "invitations", "uses")
    return ACCOUNTS["provider" if request_name in by_provider else "customer"]


@pytest.mark.parametrize("request_name", list(REQUESTS))
@pytest.mark.attack(
    "requests another customer's definition, log and notices", attacker="a customer", gain="a refusal",
    defence="access follows the customer and provider of the job on chain",
)  # fmt: skip
async def test_jobs_of_other_customers_are_out_of_reach(grid: Grid, request_name: str) -> None:
    definition_hash = await grid.customer.upload(a_job())
    grid.chain.put(1, definition_hash)
    await push_log(grid.provider, 1, 0, b"secret output")
    before = await rows(grid, *STORED)
    method, path, body = REQUESTS[request_name]
    if request_name == "upload":
        path, body = f"/v1/definitions/{definition_hash}", UPLOAD_BODY  # with the hash of another customer's definition
    async with person("127.0.6.6") as client:
        answer = await ask(
            client, grid, ACCOUNTS["rival"], method, path, body.replace(DEFINITION_HASH, definition_hash.encode())
        )
    assert answer.status_code in (403, 404, 422), answer.text
    assert "secret" not in answer.text
    assert await rows(grid, *STORED) == before


@pytest.mark.parametrize("ahead_s", [360, 3600, -301, 10**11])
@pytest.mark.attack(
    "requests with a future time, for later use", attacker="a stranger with HTTP", gain="nothing",
    defence="the time is checked before the body is read: 300 s either way",
)  # fmt: skip
async def test_a_wrong_time_is_refused(grid: Grid, ahead_s: int) -> None:
    raw = await connect(grid.url)
    path = "/v1/jobs/1/log?offset=0"
    signed = sign(ACCOUNTS["provider"], DOMAIN, "POST", path, b"x", int(grid.clock()) + ahead_s)
    lines = "".join(f"{name}: {value}\r\n" for name, value in signed.items())
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\n{lines}Content-Length: 1000000\r\n\r\n"  # the body is never sent
    await raw.send(head.encode())
    assert (await raw.reader.readline()).startswith(b"HTTP/1.1 401")
    raw.writer.close()
    assert await rows(grid, UsedNonce) == 0


@pytest.mark.attack(
    "bodies of a megabyte at once, without their last byte", attacker="a stranger with HTTP",
    gain="64 MiB of the proxy for 10 s", defence="the proxy bounds requests with bodies per address, and keeps them",
)  # fmt: skip
@pytest.mark.parametrize(
    ("path", "size"),
    [("/v1/jobs/1/log?offset=0", 2**20), ("/v1/jobs/1/notices", 2**20), ("/graphql", 2**20), ("/rpc", 2**18)],
)
async def test_unfinished_bodies_never_reach_the_services(start: Start, path: str, size: int) -> None:
    grid = await start(edge=EdgeLimits(sending=5, public_sending=5, body_within_s=2))
    opened = []
    for _ in range(12):
        raw = await connect(grid.url, "127.0.6.6")
        signed = sign(stranger(), DOMAIN, "POST", path, b"", int(grid.clock()))
        lines = "".join(f"{name}: {value}\r\n" for name, value in signed.items())
        await raw.send(f"POST {path} HTTP/1.1\r\nHost: x\r\n{lines}Content-Length: {size}\r\n\r\n".encode())
        opened.append(raw)
    await asyncio.gather(*(raw.send(b"x" * (size - 1)) for raw in opened))
    async with person("127.0.0.2") as client:
        assert (await ask(client, grid, ACCOUNTS["customer"], "PUT", UPLOAD, UPLOAD_BODY)).status_code == 204
    assert grid.context.admission.running.all_held == 0
    answers = await asyncio.gather(*(raw.rest() for raw in opened))
    refused = [answer for answer in answers if answer.startswith(b"HTTP/1.1 429")]
    assert len(refused) == 7, answers
    for raw in opened:
        raw.writer.transport.abort()


@pytest.mark.attack(
    "as many slow requests as possible", attacker="a stranger with HTTP",
    gain="128 requests at once", defence="running requests are limited per address",
)  # fmt: skip
async def test_running_requests_are_bounded(start: Start) -> None:
    grid = await start(limits=Limits(running_per_address=5))
    path = "/v1/jobs/1/log?offset=0"
    opened = []
    for _ in range(12):
        raw = await connect(grid.url, "127.0.6.6")
        signed = sign(stranger(), DOMAIN, "POST", path, b"", int(grid.clock()))
        lines = "".join(f"{name}: {value}\r\n" for name, value in signed.items())
        await raw.send(f"POST {path} HTTP/1.1\r\nHost: x\r\n{lines}Content-Length: 9\r\n\r\n".encode())
        opened.append(raw)
    other = await connect(grid.url, "127.0.0.2")
    await other.send(WHOLE_HEAD + b"\r\n")
    assert (await other.reader.readline()).startswith(b"HTTP/1.1 200")
    await until(lambda: grid.context.admission.running.all_held == 5)
    for raw in opened:
        raw.writer.write_eof()
    refused = [answer for answer in await asyncio.gather(*(raw.rest() for raw in opened)) if b" 429 " in answer[:16]]
    assert len(refused) == 7
    other.writer.close()
