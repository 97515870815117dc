"""A session key does what its rights and its origin allow, for its own wallet, each request once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import httpx
import pytest
from sqlalchemy import select

from deepgrid.errors import AccessDenied
from deepgrid.services.admission import Limits, Rate
from deepgrid.services.client import ServicesClient
from deepgrid.services.signing.session_keys import MAX_LIFETIME_S, SESSION_HEADER, Rights
from deepgrid.services.signing.signers import SessionKey
from deepgrid.services.storage.database import UsedNonce
from tests.appending import push_log
from tests.services.support import DOMAIN, Grid, Headers, Start, a_job, client_of, session_key

READ = "/v1/jobs/1/log?offset=0"


async def ask(grid: Grid, key: SessionKey, method: str = "GET", path: str = READ, body: bytes = b"",
              change: Callable[[Headers], object] = lambda _: None, **further: str) -> httpx.Response:  # fmt: skip
    """Send a request that a session key signs. `change` alters its headers afterwards."""
    headers = key.headers(DOMAIN, method, path, body, int(grid.clock()))
    change(headers)
    async with httpx.AsyncClient() as client:
        return await client.request(method, grid.url + path, content=body, headers=headers | further)


async def test_with_a_session_key_a_customer_stores_definitions_and_reads_logs(grid: Grid) -> None:
    async with client_of(grid.url, session_key()) as customer:
        definition_hash = await customer.upload(a_job())
        grid.chain.put(1, definition_hash)
        assert await grid.provider.fetch_definition(1, definition_hash) == a_job()
        await push_log(grid.provider, 1, 0, b"hello")
        assert (await customer.read_log(1)).data == b"hello"
        assert [release.job_id for release in await customer.releases(definition_hash)] == [1]
        assert await customer.notices(1) == []


Call = Callable[[ServicesClient], Awaitable[object]]
READS: tuple[Call, ...] = (lambda client: client.read_log(1), lambda client: client.releases("0" * 64))
WALLET_ONLY: tuple[Call, ...] = (
    lambda client: push_log(client, 1, 0, b"x"),
    lambda client: client.fetch_definition(1, "0" * 64),
    lambda client: client.post_notice(1, "waiting", "text"),
    lambda client: client.post_notices([(1, "waiting", "text")]),
)


async def test_a_key_that_may_store_does_not_read(grid: Grid) -> None:
    grid.chain.put(1, "0" * 64)
    async with client_of(grid.url, session_key(rights="store")) as customer:
        for call in READS:
            with pytest.raises(AccessDenied, match="no right to read"):
                await call(customer)
        await customer.upload(a_job())


async def test_a_key_that_may_read_does_not_store(grid: Grid) -> None:
    async with client_of(grid.url, session_key(rights="read")) as customer:
        with pytest.raises(AccessDenied, match="no right to store"):
            await customer.upload(a_job())


async def test_a_session_key_does_nothing_else(grid: Grid) -> None:
    grid.chain.put(1, "0" * 64)
    for name in ("customer", "provider", "operator"):
        async with client_of(grid.url, session_key(name)) as client:
            for call in WALLET_ONLY:
                with pytest.raises(AccessDenied, match="the wallet itself must sign"):
                    await call(client)


async def test_a_session_of_one_wallet_does_not_read_the_log_of_another(grid: Grid) -> None:
    grid.chain.put(1, "0" * 64)
    async with client_of(grid.url, session_key("rival")) as rival:
        with pytest.raises(AccessDenied, match="only its customer"):
            await rival.read_log(1)


ORIGINS = [  # of the session, of the request, and the status of the answer
    ("https://grid.example", "https://grid.example", 200), ("https://grid.example", None, 200), ("", None, 200),
    ("https://grid.example", "https://evil.example", 403), ("https://grid.example", "http://grid.example", 403),
    ("https://grid.example", "https://grid.example:8443", 403), ("https://grid.example", "null", 403),
    ("", "https://grid.example", 403), ("", "null", 403), ("https://grid.example", "", 403),
]  # fmt: skip


async def test_pages_of_other_origins_are_refused(grid: Grid) -> None:
    grid.chain.put(1, "0" * 64)
    for of_session, of_request, status in ORIGINS:
        further = {} if of_request is None else {"Origin": of_request}
        answer = await ask(grid, session_key(origin=of_session), **further)
        assert answer.status_code == status, (of_session, of_request, answer.text)
        if status != 200:
            assert answer.json() == {"error": "the session is for another origin"}


async def test_a_request_is_accepted_once(grid: Grid) -> None:
    grid.chain.put(1, "0" * 64)
    headers = session_key().headers(DOMAIN, "GET", READ, b"", int(grid.clock()))
    async with httpx.AsyncClient() as client:
        answers = [await client.get(grid.url + READ, headers=headers) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 401, 401]
    assert "used up" in answers[1].text


async def test_a_nonce_stays_used_after_a_restart(start: Start) -> None:
    first = await start()
    first.chain.put(1, "0" * 64)
    key = session_key()
    headers = key.headers(DOMAIN, "GET", READ, b"", int(first.clock()))
    second = await start(first.chain)
    async with httpx.AsyncClient() as client:
        assert (await client.get(first.url + READ, headers=headers)).status_code == 200
        assert (await client.get(second.url + READ, headers=headers)).status_code == 401
    async with first.context.database.read() as session:
        signers = (await session.scalars(select(UsedNonce.signer))).all()
    assert len(signers) == 1
    assert signers[0].startswith(key.address + "/")


async def test_the_limits_of_a_wallet_hold_for_all_its_keys(start: Start) -> None:
    grid = await start(limits=Limits(requests_per_signer=Rate(0.01, 6)))
    grid.chain.put(1, "0" * 64)
    answers = [await ask(grid, session_key()) for _ in range(8)]
    assert [answer.status_code for answer in answers] == [200] * 6 + [429] * 2


@pytest.mark.parametrize(
    "spoil",
    [
        lambda h: h.update({SESSION_HEADER: ""}),
        lambda h: h.update({SESSION_HEADER: "x" * 20_000}),
        lambda h: h.update({SESSION_HEADER: h[SESSION_HEADER].replace(";read,store;", ";read;")}),
        lambda h: h.update({SESSION_HEADER: session_key().session.header()}),
        lambda h: h.update({SESSION_HEADER: session_key("rival").session.header()}),
        lambda h: h.update({SESSION_HEADER: session_key(lifetime_s=-60).session.header()}),
        lambda h: h.update({SESSION_HEADER: session_key(lifetime_s=MAX_LIFETIME_S + 4000).session.header()}),
        lambda h: h.pop(SESSION_HEADER),
        lambda h: h.update({"X-Grid-Signature": "0x" + "11" * 64}),
    ],
)
async def test_what_is_not_properly_signed_is_answered_with_401(grid: Grid, spoil: Callable[[Headers], object]) -> None:
    grid.chain.put(1, "0" * 64)
    answer = await ask(grid, session_key(), change=spoil)
    assert answer.status_code == 401
    assert set(answer.json()) == {"error"}


async def test_a_session_ends_by_the_clock_of_the_service(grid: Grid) -> None:
    grid.chain.put(1, "0" * 64)
    key = session_key(lifetime_s=600)
    assert (await ask(grid, key)).status_code == 200
    grid.clock.ahead_s = 700
    answer = await ask(grid, key)
    assert (answer.status_code, "the session ended" in answer.text) == (401, True)


@pytest.mark.parametrize("rights", ["read", "read,store"])
async def test_a_machine_with_a_wrong_clock_uses_the_services_time(grid: Grid, rights: Rights) -> None:
    grid.chain.put(1, "0" * 64)
    grid.clock.ahead_s = 3600
    async with client_of(grid.url, session_key(rights=rights)) as customer:
        assert (await customer.read_log(1)).data == b""


async def test_a_clock_that_is_put_right_during_a_correction_is_looked_at_again(
    grid: Grid, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At that time, the request that uses the service's time is late too."""
    look = ServicesClient._is_clock_off
    grid.clock.ahead_s = 3600

    async def put_right_after(client: ServicesClient, signed_ahead_s: float) -> bool:
        found = await look(client, signed_ahead_s)
        grid.clock.ahead_s = 0
        return found

    monkeypatch.setattr(ServicesClient, "_is_clock_off", put_right_after)
    definition_hash = await grid.customer.upload(a_job())
    assert await grid.customer.releases(definition_hash) == []
