"""The store: private files, clear errors, and the same behaviour on PostgreSQL."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select, text

from deepgrid.compat.compat_context import CompatLimits, CompatSettings
from deepgrid.compat.unsigned_definitions import store_anonymous
from deepgrid.errors import AccessDenied, ConfigurationError, NotFound, ServiceError
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.cleanup import Retention, clean_up
from deepgrid.services.refusal import Refusal
from deepgrid.services.signing.request_signing import sign
from deepgrid.services.storage.database import Database, Definition, RevokedSession, UnownedDefinition, Use
from deepgrid.services.storage.missing_rows import add_missing
from deepgrid.services.storage.vault import Vault
from deepgrid.workflow import canonical
from tests.appending import push_log
from tests.services.postgres_support import private_postgres, stoppable_postgres
from tests.services.support import ACCOUNTS, DOMAIN, PATH, Grid, Start, a_job, client_of, push, session_key, waits
from tests.waiting import until


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """URL of a private PostgreSQL."""
    with private_postgres() as url:
        yield url


async def test_two_services_share_one_postgresql(start: Start, postgres: str) -> None:
    one = await start(database_url=postgres)
    other = await start(one.chain, database_url=postgres)
    job = a_job()
    definition_hash = await one.customer.upload(job)
    one.chain.put(1, definition_hash)
    assert await other.provider.fetch_definition(1, definition_hash) == job
    assert [r.job_id for r in await one.customer.releases(definition_hash)] == [1]

    headers = sign(ACCOUNTS["provider"], DOMAIN, "POST", PATH, b"once", int(one.clock()))
    answers = await asyncio.gather(*(push(grid.url, b"once", headers) for grid in (one, other, one, other)))
    assert sorted(answer.status_code for answer in answers) == [200, 401, 401, 401]

    reading = asyncio.create_task(one.customer.read_log(1, 4, wait_s=20))
    await until(lambda: waits(one, 1))
    await asyncio.gather(*(push_log(grid.provider, 1, 4, b" upon a time") for grid in (one, other, other)))
    assert (await reading).data == b" upon a time", "a reader learns of chunks that another process took"
    await push_log(other.provider, 1, 16, b"", final=True)
    assert (await one.customer.read_log(1)).data == b"once upon a time"

    await one.operator.post_notice(1, "assigned", "cheapest")
    assert [n.text for n in await other.customer.notices(1)] == ["cheapest"]

    one.chain.put(1, definition_hash, JobStatus.FINISHED)
    for ahead_s in (1000, 2000):
        other.clock.ahead_s = ahead_s
        await clean_up(other.context, Retention())
    one.chain.put(1, definition_hash)
    with pytest.raises(NotFound):
        await one.provider.fetch_definition(1, definition_hash)


async def test_a_release_and_the_list_of_new_jobs_may_note_a_job_at_once(start: Start, postgres: str) -> None:
    """Once the release failed with 503, because another process noted the job meanwhile."""
    grid = await start(database_url=postgres)
    row = {"definition_hash": "ab" * 32, "job_id": 7}
    async with grid.context.database.write() as first:
        await add_missing(first, Use, [row])

        async def note_too() -> None:
            async with grid.context.database.write() as second:
                await add_missing(second, Use, [row, {**row, "job_id": 8}])

        other = asyncio.create_task(note_too())
        await asyncio.wait({other}, timeout=1)
        assert not other.done(), "it waits for the first transaction"
    await other
    async with grid.context.database.read() as session:
        noted = await session.scalars(select(Use.job_id).where(Use.definition_hash == "ab" * 32).order_by(Use.job_id))
        assert list(noted) == [7, 8]


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
async def test_the_first_output_may_reach_two_services_at_once(
    start: Start, store: str, request: pytest.FixtureRequest
) -> None:
    """Once both inserted the row of the log, and one of them failed."""
    url = request.getfixturevalue("postgres") if store == "postgresql" else None
    one = await start(database_url=url)
    other = await start(one.chain, database_url=url)
    for job_id in range(101, 121):
        one.chain.put(job_id, "0" * 64)
        pushed = (push_log(grid.provider, job_id, 0, b"hello") for grid in (one, other, one, other))
        assert await asyncio.gather(*pushed) == [5] * 4
        assert (await one.customer.read_log(job_id)).data == b"hello"


async def test_a_follower_hears_at_once_of_output_that_another_process_took(start: Start, postgres: str) -> None:
    """Idle logs are not polled, so news must come through the database, even after it has lost its listeners."""
    one = await start(database_url=postgres)
    other = await start(one.chain, database_url=postgres)
    one.chain.put(301, "0" * 64)
    reading = asyncio.create_task(one.customer.read_log(301, wait_s=25))
    await until(lambda: listens(one))
    await push_log(other.provider, 301, 0, b"one, ")
    assert (await reading).data == b"one, "

    async with one.context.database.write() as session:
        listening = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ~ '^LISTEN'"
        await session.execute(text(listening))
    await push_log(other.provider, 301, 5, b"two, ")
    assert (await one.customer.read_log(301, 5, wait_s=25)).data == b"two, "
    await until(lambda: listens(one))
    await push_log(other.provider, 301, 10, b"three", final=True)
    assert (await one.customer.read_log(301, 10, wait_s=25)).data == b"three"


async def test_clean_up_and_news_go_on_after_postgresql_was_away(start: Start) -> None:
    with stoppable_postgres() as postgres:
        one = await start(database_url=postgres.url, clean_up_every_s=0.2)
        other = await start(one.chain, database_url=postgres.url)
        one.chain.put(1, "0" * 64)
        reading = asyncio.create_task(one.customer.read_log(1, wait_s=25))
        await until(lambda: listens(one))
        postgres.stop()
        try:
            headers = sign(ACCOUNTS["provider"], DOMAIN, "POST", PATH, b"lost", int(one.clock()))
            assert (await push(one.url, b"lost", headers)).status_code == 503
            await until(lambda: is_deaf(one))
        finally:
            postgres.start()
        with pytest.raises(ServiceError, match="store does not answer|cannot read this log"):
            await reading
        reading = asyncio.create_task(one.customer.read_log(1, wait_s=25))
        await until(lambda: listens(one))
        await push_log(other.provider, 1, 0, b"back")
        assert (await reading).data == b"back"
        unused = await one.customer.upload(a_job())
        one.clock.ahead_s = 2 * 24 * 3600
        await until(lambda: is_gone(one, unused))


async def is_deaf(grid: Grid) -> bool:
    return not grid.context.log_tails.news.complete


async def is_gone(grid: Grid, definition_hash: str) -> bool:
    async with grid.context.database.read() as session:
        return await session.get(Definition, definition_hash) is None


async def listens(grid: Grid) -> bool:
    return grid.context.log_tails.news.complete


async def test_two_services_on_one_postgresql_give_a_definition_one_owner(start: Start, postgres: str) -> None:
    one = await start(database_url=postgres, compat=CompatSettings(limits=CompatLimits(definitions_per_address=20)))
    other = await start(one.chain, database_url=postgres)
    before = max(one.chain.jobs_by_id, default=0)
    hashes = [await store_anonymous(one.compat, "192.0.2.1", canonical(a_job())) for _ in range(20)]
    with pytest.raises(Refusal, match="wait for their jobs"):
        await store_anonymous(one.compat, "192.0.2.1", canonical(a_job()))
    for number, definition_hash in enumerate(hashes, before + 1):
        one.chain.put(number, definition_hash)
    asked = [(grid, n, name) for n, name in enumerate(hashes, before + 1) for grid in (one, other)]

    assert all(await asyncio.gather(*(fetched_in_the_end(*words) for words in asked)))
    async with one.context.database.read() as session:
        assert (await session.scalars(select(UnownedDefinition))).all() == []


async def fetched_in_the_end(grid: Grid, job_id: int, definition_hash: str) -> bool:
    """Retry while both processes note the same jobs, as providers do."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(ServiceError):
                return await grid.provider.fetch_definition(job_id, definition_hash) == a_job()


async def test_two_services_on_one_postgresql_share_nonces_and_revocations_of_session_keys(
    start: Start, postgres: str
) -> None:
    one = await start(database_url=postgres)
    other = await start(one.chain, database_url=postgres)
    for job_id in (1, 2):
        one.chain.put(job_id, "0" * 64)
    path = "/v1/jobs/2/log?offset=0"
    key = session_key()
    headers = key.headers(DOMAIN, "GET", path, b"", int(one.clock()))
    async with httpx.AsyncClient() as client:
        answers = await asyncio.gather(*(client.get(grid.url + path, headers=headers) for grid in (one, other, one)))
    assert sorted(answer.status_code for answer in answers) == [200, 401, 401]

    async with client_of(one.url, key) as here, client_of(other.url, key) as there:
        await there.read_log(2)
        await here.revoke(key.session)
        for client in (here, there):
            with pytest.raises(AccessDenied, match="revoked"):
                await client.read_log(2)
    other.clock.ahead_s = 13 * 3600
    await clean_up(other.context, Retention())
    async with one.context.database.read() as session:
        assert (await session.scalars(select(RevokedSession))).all() == []


@pytest.mark.parametrize("url", ["", "nonsense", "mysql://x/y", "sqlite://", "sqlite:///:memory:"])
def test_an_unusable_database_url_is_reported_without_repeating_it(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Database(url)
    assert not url or url not in caught.value.message


async def test_a_database_that_does_not_answer_is_reported_without_its_password() -> None:
    database = Database("postgresql://grid:s3cret@127.0.0.1:9/x")
    with pytest.raises(ConfigurationError, match="cannot be used") as caught:
        await database.prepare()
    assert "s3cret" not in str(caught.value)
    await database.aclose()


def test_the_secret_file_is_made_once_and_must_stay_private(tmp_path: Path) -> None:
    path = tmp_path / "new" / "secret"
    sealed = Vault.open(path).seal(b"content")
    assert path.stat().st_mode & 0o777 == 0o600
    assert Vault.open(path).unseal(sealed) == b"content"
    with pytest.raises(ConfigurationError, match="another secret file"):
        Vault.open(tmp_path / "other").unseal(sealed)
    path.chmod(0o640)
    with pytest.raises(ConfigurationError, match="Others may read") as caught:
        Vault.open(path)
    assert "chmod 600" in caught.value.next_step
    path.write_text("not a key")
    path.chmod(0o600)
    with pytest.raises(ConfigurationError, match="does not hold a key"):
        Vault.open(path)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        Vault.open(tmp_path)
