"""A request counts only if its signer made it: for this grid, this path, this body, now, and once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepgrid.errors import AccessDenied
from deepgrid.services.signing import request_signing
from deepgrid.services.signing.request_signing import BadRequestSignature, Domain, sign, verify
from tests.appending import push_log
from tests.services.support import ACCOUNTS, DOMAIN, PATH, Grid, Headers, Start, push

NOW = 1_700_000_000
CUSTOMER = ACCOUNTS["customer"]
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


def signed(body: bytes = b"body", now: int = NOW) -> Headers:
    return sign(CUSTOMER, DOMAIN, "POST", PATH, body, now)


def check(headers: Headers, *, domain: Domain = DOMAIN, method: str = "POST", path: str = PATH, body: bytes = b"body",
          now: int = NOW) -> str:  # fmt: skip
    return verify(domain, method, path, body, headers, now).address


def high_s(headers: Headers) -> None:
    """Replace the signature by its malleable twin, which recovers to the same address."""
    raw = bytes.fromhex(headers[request_signing.SIGNATURE_HEADER][2:])
    s = ORDER - int.from_bytes(raw[32:64], "big")
    headers[request_signing.SIGNATURE_HEADER] = "0x" + (raw[:32] + s.to_bytes(32, "big") + bytes([55 - raw[64]])).hex()


def test_the_signer_is_recognised() -> None:
    assert check(signed()) == CUSTOMER.address
    lower = signed()
    lower[request_signing.ADDRESS_HEADER] = lower[request_signing.ADDRESS_HEADER].lower()
    assert check(lower) == CUSTOMER.address


@pytest.mark.parametrize(
    "other",
    [
        {"method": "GET"}, {"path": PATH + "0"}, {"path": "/v1/jobs/2/log?offset=0"}, {"body": b"other"}, {"body": b""},
        {"domain": Domain(1, DOMAIN.verifying_contract)}, {"domain": Domain(31337, "0x" + "11" * 20)},
    ],
)  # fmt: skip
def test_a_signature_is_for_one_request_on_one_grid(other: dict[str, object]) -> None:
    with pytest.raises(BadRequestSignature, match="does not match the address"):
        check(signed(), **other)  # type: ignore[arg-type]


@pytest.mark.parametrize(("shift", "accepted"), [(-301, False), (-300, True), (300, True), (301, False)])
def test_a_signature_is_for_now(shift: int, accepted: bool) -> None:
    if accepted:
        assert check(signed(), now=NOW + shift)
        return
    with pytest.raises(BadRequestSignature, match="301 s off"):
        check(signed(), now=NOW + shift)


def test_changed_times_and_nonces_do_not_pass() -> None:
    for name, value in (
        (request_signing.ISSUED_AT_HEADER, str(NOW + 1)),
        (request_signing.NONCE_HEADER, "0x" + "00" * 32),
    ):
        with pytest.raises(BadRequestSignature, match="does not match the address"):
            check(signed() | {name: value})


def test_the_twin_with_the_other_s_is_refused() -> None:
    headers = signed()
    high_s(headers)
    with pytest.raises(BadRequestSignature, match="malformed"):
        check(headers)


GARBAGE = st.one_of(
    st.text(max_size=200),
    st.binary(min_size=65, max_size=65).map(lambda raw: "0x" + raw.hex()),
    st.tuples(*[st.sampled_from([0, 1, 5, ORDER // 2, ORDER - 1, ORDER])] * 2, st.integers(0, 255)).map(
        lambda rsv: "0x" + (rsv[0].to_bytes(32, "big") + rsv[1].to_bytes(32, "big") + bytes([rsv[2]])).hex()
    ),
    st.sampled_from(["", "0x", "0x" + "f" * 130, "0x" + "0" * 130, "٣" * 10, "-1", "9" * 5000, "1e3", "0x1"]),
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(
        [
            request_signing.ADDRESS_HEADER,
            request_signing.ISSUED_AT_HEADER,
            request_signing.NONCE_HEADER,
            request_signing.SIGNATURE_HEADER,
        ]
    ),
    GARBAGE,
)
def test_malformed_headers_are_refused_without_a_crash(name: str, value: str) -> None:
    headers = signed()
    if value == headers[name]:
        return
    with pytest.raises(BadRequestSignature):
        check(headers | {name: value})


@pytest.mark.parametrize("name", list(signed()))
def test_every_header_is_needed(name: str) -> None:
    headers = signed()
    del headers[name]
    with pytest.raises(BadRequestSignature, match=f"{name} is missing"):
        check(headers)


def provider_headers(grid: Grid, body: bytes, path: str = PATH) -> Headers:
    return sign(ACCOUNTS["provider"], DOMAIN, "POST", path, body, int(grid.clock()))


async def test_a_request_is_accepted_once(grid: Grid) -> None:
    grid.chain.put(1, "0" * 64)
    headers = provider_headers(grid, b"x")
    answers = await asyncio.gather(*(push(grid.url, b"x", headers) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [200, 401, 401, 401, 401]
    assert "used up" in next(a.text for a in answers if a.status_code == 401)


async def test_a_nonce_stays_used_after_a_restart_and_after_clean_up(start: Start) -> None:
    first = await start()
    first.chain.put(1, "0" * 64)
    headers = provider_headers(first, b"x")
    assert (await push(first.url, b"x", headers)).status_code == 200
    second = await start(first.chain, clean_up_every_s=0.01)
    for ahead_s in (0.0, 290.0):
        second.clock.ahead_s = ahead_s
        assert (await push(second.url, b"x", headers)).status_code == 401


async def test_a_refused_request_uses_up_its_nonce_too(grid: Grid) -> None:
    headers = provider_headers(grid, b"x")
    assert (await push(grid.url, b"x", headers)).status_code == 404
    grid.chain.put(1, "0" * 64)
    assert (await push(grid.url, b"x", headers)).status_code == 401


@pytest.mark.parametrize(
    "spoil",
    [
        high_s,
        lambda h: h.clear(),
        lambda h: h.update({request_signing.SIGNATURE_HEADER: "0x00"}),
        lambda h: h.update({request_signing.ADDRESS_HEADER: CUSTOMER.address}),
        lambda h: h.update({request_signing.NONCE_HEADER: "0xzz"}),
    ],
)
async def test_the_service_answers_401_to_what_is_not_properly_signed(
    grid: Grid, spoil: Callable[[Headers], None]
) -> None:
    grid.chain.put(1, "0" * 64)
    headers = provider_headers(grid, b"x")
    spoil(headers)
    answer = await push(grid.url, b"x", headers)
    assert answer.status_code == 401
    assert set(answer.json()) == {"error"}


async def test_an_old_request_is_refused(grid: Grid) -> None:
    grid.chain.put(1, "0" * 64)
    headers = provider_headers(grid, b"x")
    grid.clock.ahead_s = 302
    assert (await push(grid.url, b"x", headers)).status_code == 401


@pytest.mark.parametrize("hour", [3600, -3600])
async def test_a_machine_with_a_wrong_clock_uses_the_services_time(grid: Grid, hour: int) -> None:
    """Otherwise a supervisor would treat the 401 as a refusal, give its jobs back and ship no more output."""
    grid.chain.put(1, "0" * 64)
    grid.clock.ahead_s = hour
    assert await push_log(grid.provider, 1, 0, b"x") == 1
    grid.clock.ahead_s = 0  # and again, when it is corrected
    assert await push_log(grid.provider, 1, 1, b"y") == 2


async def test_concurrent_requests_all_use_the_services_time(grid: Grid) -> None:
    grid.chain.put(1, "0" * 64)
    grid.clock.ahead_s = 3600
    await asyncio.gather(*(grid.provider.post_notice(1, "test", f"number {n}") for n in range(8)))
    assert len(await grid.provider.notices(1)) == 8


async def test_a_service_with_a_clock_days_off_is_not_trusted(grid: Grid) -> None:
    grid.chain.put(1, "0" * 64)
    grid.clock.ahead_s = 30 * 86400
    with pytest.raises(AccessDenied):
        await push_log(grid.provider, 1, 0, b"x")


async def test_oversize_bodies_are_cut_off(grid: Grid) -> None:
    grid.chain.put(1, "0" * 64)
    body = b"x" * (1024 * 1024 + 1)
    assert (await push(grid.url, body, provider_headers(grid, body))).status_code == 413
    path = "/v1/jobs/1/notices"
    body = b"x" * (8 * 1024 + 1)
    assert (await push(grid.url, body, provider_headers(grid, body, path), path)).status_code == 413


async def test_a_body_of_unknown_length_is_cut_off_while_it_streams(grid: Grid) -> None:
    sent = 0

    async def endless() -> object:
        nonlocal sent
        while sent < 200 * 1024 * 1024:
            sent += 65536
            yield b"x" * 65536

    status = 413
    async with httpx.AsyncClient() as client:
        try:
            answer = await client.post(grid.url + PATH, content=endless(), headers=provider_headers(grid, b""))  # type: ignore[arg-type]
            status = answer.status_code
        except httpx.TransportError:
            pass  # the service closed the connection before it took the rest
    assert status == 413
    assert sent < 50 * 1024 * 1024


async def test_paths_that_do_not_exist_and_odd_numbers_are_plain_refusals(grid: Grid) -> None:
    async with httpx.AsyncClient(base_url=grid.url) as client:
        assert (await client.get("/v1/nothing")).status_code == 404
        assert (await client.get("/openapi.json")).status_code == 404
        for job in ("0", "-1", str(2**63), "9" * 6000, "x"):
            assert (await client.get(f"/v1/jobs/{job}/notices")).status_code in (404, 422)
        health = (await client.get("/v1/health")).json()
    assert (health["status"], health["chain_id"], health["meta_scheduler"]) == ("ok", 31337, DOMAIN.verifying_contract)
