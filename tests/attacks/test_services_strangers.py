"""Requests of strangers: new keys, floods, forged source addresses, claims that do not exist yet."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from deepgrid.errors import ConfigurationError
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.admission import Limits, Rate
from deepgrid.services.edge.proxy_file import EdgeLimits, proxy_settings
from deepgrid.services.signing import request_signing
from deepgrid.services.storage.database import UsedNonce
from tests.attacks.http_support import REQUESTS, STORED, ask, person, rows, stranger
from tests.services.support import ACCOUNTS, Start, a_job

ASKED, SERVED = 80, 60  # requests of one source; the limit lets 20 pass, and one more per second


@pytest.mark.parametrize("request_name", list(REQUESTS))
@pytest.mark.attack(
    "any number of requests, each signed with a new key", attacker="a stranger with HTTP",
    gain="120 chain calls, then 2 per second; no row in the database",
    defence="requests are authorised before a nonce is stored; chain calls and requests of strangers are limited",
)  # fmt: skip
async def test_fresh_keys_cost_neither_rows_nor_chain_calls(start: Start, request_name: str) -> None:
    grid = await start(limits=Limits(lookups_per_address=Rate(0.01, 10), strangers_per_address=Rate(0.01, 20)))
    grid.chain.put(1, "1" * 64)
    method, path, body = REQUESTS[request_name]
    calls = grid.chain.calls
    async with person("127.0.6.6") as client:
        answers = [await ask(client, grid, stranger(), method, path, body) for _ in range(40)]
    statuses = {answer.status_code for answer in answers}
    assert statuses <= {403, 404, 429}, statuses
    assert 429 in statuses
    assert await rows(grid, *STORED) == 0
    assert grid.chain.calls - calls <= 2 * 11, "a job or a balance, and one more for a role or the minimum"


@pytest.mark.attack(
    "requests for the claim of a waiting job, with new keys", attacker="a stranger with HTTP",
    gain="the answer that it is too early", defence="chain calls for unknown signers have a rate limit",
)  # fmt: skip
async def test_requests_that_come_too_early_have_a_rate_too(start: Start) -> None:
    grid = await start(limits=Limits(lookups_per_address=Rate(0.01, 20)))
    grid.chain.put(1, "0" * 64, JobStatus.PENDING)
    method, path, body = REQUESTS["release"]
    async with person("127.0.6.6") as client:
        answers = [await ask(client, grid, stranger(), method, path, body) for _ in range(60)]
    statuses = [answer.status_code for answer in answers]
    assert statuses.count(425) <= 21
    assert set(statuses) == {425, 429}
    assert await rows(grid, *STORED) == 0


@pytest.mark.attack(
    "a flood of refused requests from a customer's own address", attacker="a stranger with HTTP",
    gain="other strangers at that address must wait", defence="recently accepted signers pass",
)  # fmt: skip
async def test_a_flood_delays_no_known_signer(start: Start) -> None:
    grid = await start(limits=Limits(strangers_per_address=Rate(0.01, 20)))
    definition_hash = await grid.customer.upload(a_job())
    async with person("127.0.0.1") as client:
        statuses = [(await client.get(f"{grid.url}/v1/nothing")).status_code for _ in range(60)]
        assert statuses.count(404) <= 21
        assert statuses[-1] == 429
        assert (await ask(client, grid, stranger(), *REQUESTS["upload"])).status_code == 429
        answer = await ask(client, grid, ACCOUNTS["customer"], "GET", f"/v1/definitions/{definition_hash}/releases")
        assert answer.status_code == 200
        # A request that claims such a signer passes this limit, and fails at its signature.
        headers = {request_signing.ADDRESS_HEADER: ACCOUNTS["customer"].address}
        answer = await client.get(f"{grid.url}/v1/definitions/{definition_hash}/releases", headers=headers)
        assert answer.status_code == 401
    async with person("127.0.0.2") as client:
        assert (await client.get(f"{grid.url}/v1/health")).status_code == 200


@pytest.mark.attack(
    "a flood of valid requests without a signature", attacker="a stranger with HTTP", gain="100 answers per second",
    defence="a rate limit per source address",
)  # fmt: skip
async def test_unsigned_requests_have_a_rate(start: Start) -> None:
    few = EdgeLimits(requests_per_s=1, requests_at_once=20, public_reads_per_s=1, public_reads_at_once=20)
    grid = await start(edge=few)
    async with person("127.0.6.6") as client:
        for path in ("/v1/health", "/v1/jobs/1/notices"):
            answers = await asyncio.gather(*(client.get(grid.url + path) for _ in range(ASKED)))
            statuses = [answer.status_code for answer in answers]
            assert set(statuses) == {200, 429}
            assert 20 < statuses.count(200) < SERVED
            refused = next(answer for answer in answers if answer.status_code == 429)
            assert (refused.headers["Retry-After"], "too many requests" in refused.json()["error"]) == ("1", True)
    async with person("127.0.6.7") as client:
        assert (await client.get(f"{grid.url}/v1/health")).status_code == 200


@pytest.mark.attack(
    "one customer sends requests without a pause", attacker="a customer", gain="100 answers per second",
    defence="a rate limit per signer, for all its addresses",
)  # fmt: skip
async def test_a_signer_has_a_rate(start: Start) -> None:
    grid = await start(limits=Limits(requests_per_signer=Rate(0.01, 10)))
    definition_hash = await grid.customer.upload(a_job())
    statuses = []
    for number in range(15):
        async with person(f"127.0.8.{number + 1}") as client:
            answer = await ask(client, grid, ACCOUNTS["customer"], "GET", f"/v1/definitions/{definition_hash}/releases")
            statuses.append(answer.status_code)
    assert statuses == [200] * 9 + [429] * 6
    assert await rows(grid, UsedNonce) == 10


@pytest.mark.parametrize("header", ["X-Forwarded-For", "X-Real-IP", "Forwarded"])
@pytest.mark.attack(
    "a new forged source address with each request", attacker="a stranger with HTTP", gain="nothing",
    defence="the proxy replaces X-Forwarded-For by the address of the connection",
)  # fmt: skip
async def test_a_forged_source_address_escapes_no_limit(start: Start, header: str) -> None:
    grid = await start(edge=EdgeLimits(), limits=Limits(strangers_per_address=Rate(0.01, 20)))
    async with person("127.0.0.3") as client:
        asked = [client.get(f"{grid.url}/v1/health", headers={header: f"10.0.0.{n}"}) for n in range(30)]
        statuses = [(await one).status_code for one in asked]
    assert statuses.count(200) <= 21
    async with person("127.0.0.4") as client:
        assert (await client.get(f"{grid.url}/v1/health")).status_code == 200


@pytest.mark.attack(
    "a forged source address before the entry of a proxy in front", attacker="a stranger with HTTP", gain="nothing",
    defence="the last entry outside of `--behind` is the source; an IPv6 /64 is one source",
)  # fmt: skip
async def test_behind_a_proxy_the_last_untrusted_entry_counts(start: Start) -> None:
    few = EdgeLimits(requests_per_s=1, requests_at_once=20)
    free = Limits(strangers_per_address=Rate(10_000, 10_000))
    grid = await start(edge=few, behind=("127.0.9.0/24",), limits=free)
    async with person("127.0.9.1") as proxy:

        async def served(*forwarded: str) -> int:
            """Return how many of these requests at once are served, each with its X-Forwarded-For."""
            asked = [proxy.get(f"{grid.url}/v1/health", headers={"X-Forwarded-For": one}) for one in forwarded]
            return [answer.status_code for answer in await asyncio.gather(*asked)].count(200)

        assert await served(*(f"10.0.0.{n % 250}, 203.0.113.7" for n in range(ASKED))) < SERVED
        assert await served("203.0.113.8") == 1, "others behind the same proxy are served"
        assert await served(*(f"2001:db8:0:1::{n:x}" for n in range(1, ASKED + 1))) < SERVED, "a /64 is one source"
        assert await served("2001:db8:0:2::1") == 1
        assert await served(*(f"10.1.0.{n}" for n in range(20))) == 20
    async with person("127.0.0.5") as direct:  # not a proxy that is trusted
        asked = [direct.get(f"{grid.url}/v1/health", headers={"X-Forwarded-For": f"10.2.0.{n}"}) for n in range(ASKED)]
        assert [answer.status_code for answer in await asyncio.gather(*asked)].count(200) < SERVED


@pytest.mark.attack(
    "an operator trusts every proxy, or a name", attacker="a stranger with HTTP", gain="nothing",
    defence="only addresses and networks are accepted",
)  # fmt: skip
@pytest.mark.parametrize("name", ["*", "proxy.example.org", "", "10.0.0.5/8", "10.0.0.5; deny all"])
def test_trusted_proxies_must_be_addresses(name: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be configured"):
        proxy_settings(sockets=(Path("/run/deepgrid-services"),), listen=("127.0.0.1:1",), behind=(name,))
