"""Changes of a customer's jobs across reorganisations of the chain."""

from __future__ import annotations

from deepgrid.chain.client import Chain
from deepgrid.client.engine.changes import ChangeReader, Cursor
from deepgrid.client.job_values import JobChange
from deepgrid.lifecycle.states import JobStatus
from tests.chain.conftest import own_grid as own_grid
from tests.chain.grid import Grid, gather_people

P, M, S, R = JobStatus.PENDING, JobStatus.META_SCHEDULED, JobStatus.SCHEDULED, JobStatus.RUNNING


async def everything(reader: ChangeReader) -> list[JobChange]:
    """Return all changes up to the newest block."""
    found = await reader.read()
    while not reader.caught_up:
        found += await reader.read()
    return found


async def test_only_what_is_new_after_a_reorganisation_is_reported(own_grid: Grid) -> None:
    async with await Chain.connect(own_grid.book) as chain:
        people = await gather_people(own_grid, chain, "p")
        reader = ChangeReader(chain, people.customer.address, None, 0)
        assert await everything(reader) == []
        job_id = await people.running()
        assert [change.status for change in await everything(reader)] == [P, M, S, R]
        await people.rest()
        own_grid.anvil.call("anvil_reorg", 3, [])  # the claim and the report are gone
        assert await everything(reader) == []
        await people.provider.claim_next()
        assert [(change.job_id, change.status) for change in await everything(reader)] == [(job_id, S)]


async def test_a_restart_after_a_reorganisation_reports_the_last_blocks_again(own_grid: Grid) -> None:
    async with await Chain.connect(own_grid.book) as chain:
        people = await gather_people(own_grid, chain, "p")
        first = ChangeReader(chain, people.customer.address, None, 0)
        assert await everything(first) == []
        await people.running()
        changes = await everything(first)
        await people.rest()
        own_grid.anvil.call("anvil_reorg", 2, [])
        kept = ChangeReader(chain, people.customer.address, Cursor.read(changes[2].cursor), 0)
        assert await everything(kept) == []  # the cursor's block is still there
        lost = ChangeReader(chain, people.customer.address, Cursor.read(changes[3].cursor), 0)
        assert [change.status for change in await everything(lost)] == [P, M, S]


async def test_with_confirmations_changes_come_later(own_grid: Grid) -> None:
    async with await Chain.connect(own_grid.book) as chain:
        people = await gather_people(own_grid, chain, "p")
        reader = ChangeReader(chain, people.customer.address, None, 3)
        assert await everything(reader) == []
        job_id = await people.request()
        found = await everything(reader)
        for _ in range(3):
            assert found == []
            own_grid.anvil.mine()
            found = await everything(reader)
        assert [(change.job_id, change.status) for change in found] == [(job_id, P)]


async def test_a_job_whose_id_went_to_another_customer_is_left_out(own_grid: Grid) -> None:
    async with await Chain.connect(own_grid.book) as chain:
        people, others = await gather_people(own_grid, chain, "p"), await gather_people(own_grid, chain, "q")
        reader = ChangeReader(chain, people.customer.address, None, 0)
        assert await everything(reader) == []
        job_id = await people.request()
        assert [change.job_id for change in await everything(reader)] == [job_id]
        await people.rest()
        own_grid.anvil.call("anvil_reorg", 1, [])
        assert await others.request() == job_id
        assert await everything(reader) == []
