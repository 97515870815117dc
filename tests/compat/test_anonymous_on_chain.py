"""The owner of a definition without a signature, on the real contracts: a later copy of its hash gets nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deepgrid.compat.compat_context import CompatContext, CompatSettings
from deepgrid.compat.existing_clients import serving_existing_clients
from deepgrid.compat.unsigned_definitions import store_anonymous
from deepgrid.errors import NotFound
from deepgrid.services.app import ServicesSettings, open_services
from deepgrid.services.cleanup import Retention, clean_up
from deepgrid.services.client import ServicesClient
from deepgrid.services.edge.listeners import address_of, open_listeners
from deepgrid.services.serve import listening
from deepgrid.services.signing.request_signing import Domain
from deepgrid.workflow import canonical
from tests.chain.grid import CREDIT, DEFINITION, Grid, People, gather_people, running_grid
from tests.services.support import Clock, a_job

LOCKED_WEI = 200 * CREDIT


@dataclass
class Live:
    """Services on a real chain, people, and a rival with credits. `provider` is the provider at the services."""

    compat: CompatContext
    people: People
    rival: Writer
    provider: ServicesClient
    clock: Clock

    async def claimed(self, job_id: int) -> None:
        """Let the provider claim this job, its only assigned one."""
        await self.people.operator.meta_schedule(job_id, self.people.provider.address)
        claimed = await self.people.provider.claim_next()
        assert claimed is not None
        assert claimed.job_id == job_id


@pytest.fixture(scope="module")
def chain_grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    with running_grid(tmp_path_factory.mktemp("anonymous")) as grid:
        yield grid


@pytest.fixture
async def live(chain_grid: Grid, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Live]:
    database = f"sqlite:///{tmp_path}/services.sqlite"
    settings = ServicesSettings(database, tmp_path / "secret", port=0, clean_up_every_s=3600)
    clock = Clock()
    book = chain_grid.book
    async with AsyncExitStack() as stack:
        chain = await stack.enter_async_context(await Chain.connect(book))
        people = await gather_people(chain_grid, chain, request.node.name)
        rival = Writer(chain, Sender(chain, chain_grid.new_key(f"{request.node.name}-rival")))
        await people.operator.mint(rival.address, LOCKED_WEI)
        domain = Domain(book.chain_id, book.meta_scheduler)
        app = await stack.enter_async_context(open_services(settings, domain, chain, clock))
        listeners = stack.enter_context(open_listeners(settings))
        front = await stack.enter_async_context(serving_existing_clients(app, None, CompatSettings()))
        await stack.enter_async_context(listening(front, listeners))
        url = f"http://{address_of(listeners.http)}"
        account = Wallet.load(chain_grid.keys / f"{request.node.name}-p").account
        provider = await stack.enter_async_context(ServicesClient.of(book, account, url))
        yield Live(front.compat, people, rival, provider, clock)


async def request_job(who: Writer, definition_hash: str) -> int:
    figures = replace(DEFINITION, definition_hash=definition_hash)
    return await who.request_job(figures, LOCKED_WEI, "a job", approve_first=LOCKED_WEI)


async def test_the_customer_of_the_first_job_is_the_owner(live: Live) -> None:
    definition_hash = await store_anonymous(live.compat, "192.0.2.1", canonical(a_job()))
    first = await request_job(live.people.customer, definition_hash)
    copy = await request_job(live.rival, definition_hash)
    assert first < copy
    await live.claimed(copy)
    with pytest.raises(NotFound, match="customer has no definition"):
        await live.provider.fetch_definition(copy, definition_hash)
    await live.claimed(first)
    assert await live.provider.fetch_definition(first, definition_hash) == a_job()


async def test_the_clean_up_keeps_what_a_waiting_job_names(live: Live) -> None:
    named, forgotten = [await store_anonymous(live.compat, "192.0.2.1", canonical(a_job())) for _ in range(2)]
    job_id = await request_job(live.people.customer, named)
    live.clock.ahead_s = 3700
    await clean_up(live.compat.services, Retention())
    live.clock.ahead_s = 0
    late = await request_job(live.rival, forgotten)
    for number in (job_id, late):
        await live.claimed(number)
    assert await live.provider.fetch_definition(job_id, named) == a_job()
    with pytest.raises(NotFound):
        await live.provider.fetch_definition(late, forgotten)
