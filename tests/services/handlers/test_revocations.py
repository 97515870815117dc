"""A revoked session key is refused at once, by every process, until its session would have ended."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import select

from deepgrid.errors import AccessDenied, InputError, ServiceError
from deepgrid.services.admission import Limits
from deepgrid.services.cleanup import Retention, clean_up
from deepgrid.services.signing.session_keys import CLOCK_SLACK_S, MAX_LIFETIME_S, Session
from deepgrid.services.storage import database
from tests.appending import push_log
from tests.services.support import ACCOUNTS, DOMAIN, Grid, Start, a_job, client_of, session_key, waits
from tests.waiting import until

HASH = "0" * 64


async def revoked(grid: Grid) -> int:
    async with grid.context.database.read() as session:
        return len((await session.scalars(select(database.RevokedSession))).all())


async def test_a_wallet_ends_its_session_key(grid: Grid) -> None:
    grid.chain.put(1, HASH)
    key, other = session_key(), session_key()
    async with client_of(grid.url, key) as ended, client_of(grid.url, other) as untouched:
        await ended.read_log(1)
        await grid.customer.revoke(key.session)
        await grid.customer.revoke(key.session)  # again: nothing changes
        for call in (ended.read_log(1), ended.upload(a_job()), ended.releases(await grid.customer.upload(a_job()))):
            with pytest.raises(AccessDenied, match="the session key is revoked"):
                await call
        await untouched.read_log(1)


async def test_a_session_key_ends_itself_and_no_other(grid: Grid) -> None:
    grid.chain.put(1, HASH)
    key, other = session_key(rights="store"), session_key()
    async with client_of(grid.url, key) as client:
        with pytest.raises(AccessDenied, match="revokes only itself"):
            await client.revoke(other.session)
        await client.revoke(key.session)
        with pytest.raises(AccessDenied, match="revoked"):
            await client.upload(a_job())
    async with client_of(grid.url, other) as client:
        await client.read_log(1)


async def test_strangers_end_nothing(grid: Grid) -> None:
    grid.chain.put(1, HASH)
    key = session_key()
    async with client_of(grid.url, session_key("rival")) as rivals_key:
        for stranger in (grid.rival, grid.provider, rivals_key):
            with pytest.raises(AccessDenied, match="has not signed this session"):
                await stranger.revoke(key.session)
    # A wallet may sign another wallet's public key as its own. Then its revocation concerns only itself.
    stolen = Session.signed_by(ACCOUNTS["rival"], DOMAIN, key.session.public_key, key.session.not_after, "read", "")
    await grid.rival.revoke(stolen)
    async with client_of(grid.url, key) as client:
        await client.read_log(1)


async def test_a_wallet_whose_keys_can_do_nothing_stores_nothing(grid: Grid) -> None:
    key = session_key()
    grid.chain.balances.clear()
    with pytest.raises(AccessDenied, match="no job and too few credits"):
        await grid.customer.revoke(key.session)
    assert await revoked(grid) == 0
    grid.chain.put(1, HASH)  # all its credits are locked in a job
    await grid.customer.revoke(key.session)
    assert await revoked(grid) == 1
    grid.chain.down = True
    with pytest.raises(ServiceError):
        await grid.customer.revoke(session_key().session)


async def test_all_processes_know_of_a_revocation(start: Start) -> None:
    one = await start()
    other = await start(one.chain)
    one.chain.put(1, HASH)
    key = session_key()
    async with client_of(other.url, key) as client:
        await client.read_log(1)
        await one.customer.revoke(key.session)
        with pytest.raises(AccessDenied, match="revoked"):
            await client.read_log(1)
    again = await start(one.chain)  # and after a restart
    async with client_of(again.url, key) as client:
        with pytest.raises(AccessDenied, match="revoked"):
            await client.read_log(1)


async def test_a_reader_that_waits_gets_nothing_after_the_revocation(grid: Grid) -> None:
    grid.chain.put(1, HASH)
    key = session_key()
    async with client_of(grid.url, key) as client:
        reading = asyncio.create_task(client.read_log(1, wait_s=20))
        await until(lambda: waits(grid, 1))
        await grid.customer.revoke(key.session)
        await push_log(grid.provider, 1, 0, b"secret")
        with pytest.raises(AccessDenied, match="revoked"):
            await reading


async def test_a_revocation_is_kept_until_the_session_would_have_ended(grid: Grid) -> None:
    grid.chain.put(1, HASH)
    key = session_key()
    await grid.customer.revoke(key.session)
    for ahead_s, kept in ((MAX_LIFETIME_S, 1), (MAX_LIFETIME_S + CLOCK_SLACK_S + 60, 0)):
        grid.clock.ahead_s = ahead_s
        await clean_up(grid.context, Retention())
        assert await revoked(grid) == kept


async def test_a_session_that_lasts_too_long_can_be_revoked_before_it_counts(grid: Grid) -> None:
    grid.chain.put(1, HASH)
    key = session_key(lifetime_s=2 * MAX_LIFETIME_S)
    await grid.customer.revoke(key.session)
    grid.clock.ahead_s = 1.5 * MAX_LIFETIME_S
    await clean_up(grid.context, Retention())
    async with client_of(grid.url, key) as client:
        with pytest.raises(AccessDenied, match="revoked"):
            await client.read_log(1)


async def test_a_second_session_of_a_key_makes_no_revocation_shorter(grid: Grid) -> None:
    grid.chain.put(1, HASH)
    key = session_key()
    short = Session.signed_by(ACCOUNTS["customer"], DOMAIN, key.session.public_key, int(grid.clock()) + 9, "read", "")
    for session in (key.session, short):
        await grid.customer.revoke(session)
    grid.clock.ahead_s = 3600
    await clean_up(grid.context, Retention())
    assert await revoked(grid) == 1


async def test_a_wallet_has_a_bounded_number_of_revocations(start: Start) -> None:
    grid = await start(limits=Limits(revocations_per_wallet=2))
    grid.chain.put(1, HASH)
    for _ in range(2):
        await grid.customer.revoke(session_key().session)
    with pytest.raises(ServiceError, match="too many session keys are revoked"):
        await grid.customer.revoke(session_key().session)


@pytest.mark.parametrize("header", ["", "x", "0x04;1;read;;0x", ";" * 4, "x" * 1023])
async def test_malformed_sessions_are_refused(grid: Grid, header: str) -> None:
    class Malformed(Session):
        def header(self) -> str:
            return header

    session = session_key().session
    malformed = Malformed(session.public_key, session.not_after, session.rights, session.origin, session.signature)
    with pytest.raises(InputError, match="malformed"):
        await grid.customer.revoke(malformed)
