"""A definition without a signature belongs to the customer of the first job that names it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import httpx
import pytest
from cryptography.fernet import Fernet

from deepgrid.compat.compat_context import CompatLimits, CompatSettings
from deepgrid.compat.unsigned_definitions import store_anonymous
from deepgrid.errors import AccessDenied, InputError, NotFound, ServiceError
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.admission import Rate
from deepgrid.services.cleanup import Retention, clean_up
from deepgrid.services.messages import Upload
from deepgrid.services.refusal import Refusal
from deepgrid.services.signing import request_signing
from deepgrid.services.storage.database import UnownedDefinition
from deepgrid.services.storage.vault import Vault
from deepgrid.workflow import Step, StepRun, canonical
from tests.appending import push_log
from tests.services.support import ACCOUNTS, DOMAIN, Grid, Start, a_job

SOURCE = "192.0.2.1"
HOUR_S, DAY_S = 3600, 24 * 3600
RIVAL = ACCOUNTS["rival"].address
SIZE = len(Vault(Fernet.generate_key()).seal(bytes(32) + canonical(a_job())))


async def store(grid: Grid, command: str = "echo s3cret", source: str = SOURCE) -> str:
    return await store_anonymous(grid.compat, source, canonical(a_job(command)))


async def round_at(grid: Grid, ahead_s: float) -> None:
    """Run one round of the clean-up at this time."""
    grid.clock.ahead_s = ahead_s
    try:
        await clean_up(grid.context, Retention())
    finally:
        grid.clock.ahead_s = 0


async def salt_of(grid: Grid, definition_hash: str) -> bytes:
    async with grid.context.database.read() as session:
        row = await session.get(UnownedDefinition, definition_hash)
    assert row is not None
    return grid.context.vault.unseal(row.sealed)[:32]


async def upload_signed(grid: Grid, who: str, definition_hash: str, salt: bytes) -> httpx.Response:
    """Upload the same definition under the same hash, signed by a customer who somehow knows the salt."""
    body = Upload(salt=salt.hex(), definition=canonical(a_job()).decode()).model_dump_json().encode()
    path = f"/v1/definitions/{definition_hash}"
    headers = request_signing.sign(ACCOUNTS[who], DOMAIN, "PUT", path, body, int(grid.clock()))
    async with httpx.AsyncClient() as client:
        return await client.put(grid.url + path, content=body, headers=headers)


async def test_the_provider_of_the_first_job_gets_it_and_its_customer_sees_the_release(grid: Grid) -> None:
    definition_hash = await store(grid)
    assert len(definition_hash) == 64
    grid.chain.put(1, definition_hash)
    assert await grid.provider.fetch_definition(1, definition_hash) == a_job()
    assert await grid.provider.fetch_definition(1, definition_hash) == a_job(), "a restarted supervisor fetches again"
    assert [r.job_id for r in await grid.customer.releases(definition_hash)] == [1, 1]
    with pytest.raises(NotFound):
        await grid.rival.releases(definition_hash)


async def test_nobody_has_it_before_a_job_names_it(grid: Grid) -> None:
    definition_hash = await store(grid)
    grid.chain.put(1, "0" * 64)
    with pytest.raises(AccessDenied, match="names another definition"):
        await grid.provider.fetch_definition(1, definition_hash)
    for client in (grid.customer, grid.rival):
        with pytest.raises(NotFound):
            await client.releases(definition_hash)


async def test_a_later_job_of_another_customer_gets_nothing_even_if_it_is_claimed_first(grid: Grid) -> None:
    definition_hash = await store(grid)
    grid.chain.put(1, "0" * 64, JobStatus.FINISHED)
    grid.chain.put(2, definition_hash, JobStatus.PENDING)
    grid.chain.put(3, definition_hash, customer=RIVAL, provider=ACCOUNTS["other_provider"].address)
    with pytest.raises(NotFound, match="customer has no definition"):
        await grid.other_provider.fetch_definition(3, definition_hash)
    grid.chain.put(2, definition_hash)
    assert await grid.provider.fetch_definition(2, definition_hash) == a_job()


async def test_a_provider_gets_nothing_for_the_job_of_another_provider(grid: Grid) -> None:
    definition_hash = await store(grid)
    grid.chain.put(1, definition_hash)
    with pytest.raises(AccessDenied, match="not scheduled or running at"):
        await grid.other_provider.fetch_definition(1, definition_hash)


async def test_the_owner_stays_when_a_reorganisation_puts_a_copy_first(grid: Grid) -> None:
    definition_hash = await store(grid)
    grid.chain.put(1, definition_hash, JobStatus.PENDING)
    await round_at(grid, 0)
    grid.chain.put(1, definition_hash, customer=RIVAL)
    grid.chain.put(2, definition_hash)
    with pytest.raises(NotFound, match="customer has no definition"):
        await grid.provider.fetch_definition(1, definition_hash)
    assert await grid.provider.fetch_definition(2, definition_hash) == a_job()


async def test_a_signed_upload_of_the_same_hash_steals_nothing(grid: Grid) -> None:
    definition_hash = await store(grid)
    salt = await salt_of(grid, definition_hash)
    assert (await upload_signed(grid, "rival", definition_hash, salt)).status_code == 403
    grid.chain.put(1, definition_hash)
    await grid.provider.fetch_definition(1, definition_hash)
    assert (await upload_signed(grid, "rival", definition_hash, salt)).status_code == 403
    grid.chain.put(2, definition_hash, customer=RIVAL, provider=ACCOUNTS["other_provider"].address)
    with pytest.raises(NotFound):
        await grid.other_provider.fetch_definition(2, definition_hash)
    assert (await upload_signed(grid, "customer", definition_hash, salt)).status_code == 204, "its own, as always"


async def test_a_node_that_is_behind_is_asked_again(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    definition_hash = await store(grid)
    grid.chain.put(1, definition_hash)

    async def none() -> int:
        return 0

    with monkeypatch.context() as behind:
        behind.setattr(grid.chain, "job_count", none)
        with pytest.raises(ServiceError, match="not all known") as caught:
            await grid.provider.fetch_definition(1, definition_hash)
        assert caught.value.transient
    assert await grid.provider.fetch_definition(1, definition_hash) == a_job()


async def test_one_that_no_job_names_goes_after_an_hour(grid: Grid) -> None:
    definition_hash = await store(grid)
    await round_at(grid, HOUR_S - 60)
    grid.chain.put(1, "0" * 64)
    await round_at(grid, HOUR_S + 60)
    grid.chain.put(2, definition_hash)
    with pytest.raises(NotFound):
        await grid.provider.fetch_definition(2, definition_hash)


async def test_one_that_a_waiting_job_names_stays_until_the_job_is_over(grid: Grid) -> None:
    definition_hash = await store(grid)
    grid.chain.put(1, definition_hash, JobStatus.PENDING)
    for ahead_s in (HOUR_S + 60, 20 * DAY_S):
        await round_at(grid, ahead_s)
    grid.chain.put(1, definition_hash)
    assert await grid.provider.fetch_definition(1, definition_hash) == a_job()
    grid.chain.put(1, definition_hash, JobStatus.FINISHED)
    for ahead_s in (HOUR_S, 2 * HOUR_S):
        await round_at(grid, ahead_s)
    grid.chain.put(1, definition_hash)
    with pytest.raises(NotFound):
        await grid.provider.fetch_definition(1, definition_hash)


async def test_a_silent_chain_deletes_nothing(grid: Grid) -> None:
    definition_hash = await store(grid)
    grid.chain.put(1, definition_hash)
    grid.chain.down = True
    with pytest.raises(Exception, match="does not answer"):
        await round_at(grid, HOUR_S + 60)
    with pytest.raises(ServiceError, match="chain does not answer"):
        await grid.provider.fetch_definition(1, definition_hash)
    grid.chain.down = False
    assert await grid.provider.fetch_definition(1, definition_hash) == a_job()


@pytest.mark.parametrize("enable_logging", [True, False])
async def test_its_log_is_like_that_of_a_signed_one(grid: Grid, enable_logging: bool) -> None:
    definition_hash = await store_anonymous(grid.compat, SOURCE, canonical(a_job(enable_logging=enable_logging)))
    grid.chain.put(1, definition_hash)
    await grid.provider.fetch_definition(1, definition_hash)
    assert not (await grid.customer.read_log(1)).final
    grid.chain.put(1, definition_hash, JobStatus.FINISHED, ended_at=int(grid.clock()))
    assert (await grid.customer.read_log(1)).final is not enable_logging, "the definition says whether output comes"
    await push_log(grid.provider, 1, 0, b"output\n", final=True)
    assert (await grid.customer.read_log(1)).data == b"output\n"
    with pytest.raises(AccessDenied):
        await grid.rival.read_log(1)


async def test_faults_are_those_of_signed_uploads(grid: Grid) -> None:
    steps = (Step(run=StepRun(command="x" * 100_000)),) * 3
    with pytest.raises(InputError, match="larger than 256 KiB"):
        await store_anonymous(grid.compat, SOURCE, canonical(a_job().model_copy(update={"steps": steps})))


@pytest.mark.parametrize(
    ("limits", "same_source", "other_source"),
    [
        ({"definitions_per_address": 2}, 2, 4),
        ({"definitions": 3}, 3, 3),
        ({"definition_bytes_per_address": 5 * SIZE // 2}, 2, 4),
        ({"definition_bytes": 5 * SIZE // 2}, 2, 2),
        ({"submissions_per_address": Rate(1e-6, 2)}, 2, 4),
    ],
    ids=["number per address", "number", "bytes per address", "bytes", "rate"],
)
async def test_what_has_no_owner_is_bounded(
    start: Start, limits: dict[str, int], same_source: int, other_source: int
) -> None:
    grid = await start(compat=CompatSettings(limits=CompatLimits(**limits)))  # type: ignore[arg-type]
    stored = 0
    for source, most in (("192.0.2.1", same_source), ("192.0.2.2", other_source)):
        found = [await tried(store(grid, source=source)) for _ in range(5)]
        stored += sum(isinstance(one, str) for one in found)
        assert stored == most
        assert all((one.status, one.retry_after_s is None) == (429, False) for one in found if isinstance(one, Refusal))


async def tried(storing: Awaitable[str]) -> str | Refusal:
    try:
        return await storing
    except Refusal as refusal:
        return refusal


async def test_definitions_that_have_found_their_owner_leave_room(start: Start) -> None:
    grid = await start(compat=CompatSettings(limits=CompatLimits(definitions=1)))
    for number in (1, 2, 3):
        grid.chain.put(number, await store(grid), JobStatus.PENDING)
        with pytest.raises(Refusal, match="wait for their jobs"):
            await store(grid)
        await round_at(grid, 0)


async def test_many_releases_at_once_read_the_chain_once(grid: Grid) -> None:
    hashes = [await store(grid) for _ in range(20)]
    for number, definition_hash in enumerate(hashes, 1):
        grid.chain.put(number, definition_hash)
    before = grid.chain.calls
    found = await asyncio.gather(*(grid.provider.fetch_definition(n, h) for n, h in enumerate(hashes, 1)))
    assert found == [a_job()] * 20
    assert grid.chain.calls - before < 2 * 20
