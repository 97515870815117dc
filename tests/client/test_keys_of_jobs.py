"""`submit` with an idempotency key: one job per key and workflow, from any machine, for any number of attempts."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from deepgrid.client import AsyncGrid, ClientSettings, GridError, IdempotencyConflict, InputError
from deepgrid.services.client import ServicesClient
from tests.chain.anvil import Anvil
from tests.cli.live import CREDIT, EXAMPLE, Live, Party
from tests.client.stage import Customer


async def ids_of(grid: AsyncGrid) -> list[int]:
    return [job.id async for job in grid.jobs()]


async def test_the_same_key_and_workflow_find_the_same_job_on_another_machine(
    grid: AsyncGrid, customer: Customer, tmp_path: Path
) -> None:
    job = await grid.submit(EXAMPLE, credits=100, key="one")
    other = await grid.submit(EXAMPLE, credits=100, key="two")
    assert (await grid.submit(EXAMPLE, credits=100, key="one")).id == job.id != other.id
    await job.cancel()
    (tmp_path / "elsewhere").mkdir()
    copy = shutil.copy(customer.key, tmp_path / "elsewhere" / "key")
    async with AsyncGrid(copy, customer.book) as elsewhere:
        assert (await elsewhere.submit(EXAMPLE, credits=100, key="one")).id == job.id
        assert await ids_of(elsewhere) == [other.id, job.id]


async def test_a_key_with_another_workflow_is_a_conflict_only_if_it_has_a_job(
    grid: AsyncGrid, customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow = await grid.workflow(EXAMPLE)
    with pytest.raises(InputError, match="cannot be locked"):
        await grid.submit(workflow.env(A=1), credits=5000, key="k")
    job = await grid.submit(workflow.env(A=2), credits=100, key="k")
    with pytest.raises(IdempotencyConflict, match=f"another workflow before, for job {job.id}"):
        await grid.submit(workflow.env(A=1), credits=100, key="k")
    assert await ids_of(grid) == [job.id]
    files = [file.read_bytes() for file in customer.key.parent.glob(f"{customer.key.name}.idempotency/*")]
    assert files
    assert not any(b"Hello" in content or b'"k"' in content for content in files)


async def test_submissions_with_one_key_at_the_same_time_make_one_job(grid: AsyncGrid, customer: Customer) -> None:
    async with AsyncGrid(customer.key, customer.book) as other:
        jobs = await asyncio.gather(*(one.submit(EXAMPLE, credits=100, key="k") for one in (grid, other) * 3))
    assert {job.id for job in jobs} == set(await ids_of(grid))
    assert len({job.id for job in jobs}) == 1


async def test_the_job_is_found_among_all_jobs_of_the_customer(grid: AsyncGrid, live: Live) -> None:
    job = await grid.submit(EXAMPLE, credits=100, key="old")
    await job.cancel()
    for round_ in range(7):
        more = await grid.map(EXAMPLE, [{"ROUND": round_}] * 8, credits=100, at_once=8)
        while len(more.ids) < 8:
            await asyncio.sleep(0.05)
        await more.cancel()
    assert (await grid.submit(EXAMPLE, credits=100, key="old")).id == job.id


async def test_a_request_that_is_not_mined_yet_is_waited_for(
    customer: Customer, live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process is killed between sending and mining; the next one must not request the job again."""
    anvil: Anvil = live.grid.anvil
    async with AsyncGrid(customer.key, customer.book) as grid:
        await grid.wallet.set_allowance(100)
        anvil.call("evm_setAutomine", False)
        try:
            first = asyncio.create_task(grid.submit(EXAMPLE, credits=100, key="k"))
            while int(anvil.call("eth_getTransactionCount", grid.address, "pending"), 16) < 2:
                assert not first.done()
                await asyncio.sleep(0.05)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            settings = ClientSettings(mining_wait_s=0.5, patience_s=0.5)
            async with AsyncGrid(customer.key, customer.book, settings=settings) as impatient:
                with pytest.raises(GridError, match="not mined after 0 s") as waited:
                    await impatient.submit(EXAMPLE, credits=100, key="k")
                assert waited.value.transient
            async with AsyncGrid(customer.key, customer.book) as second:
                again = asyncio.create_task(second.submit(EXAMPLE, credits=100, key="k"))
                await asyncio.sleep(0.5)  # its read of the transactions; mining before it would test nothing
                anvil.mine()
                job = await again
                assert await ids_of(second) == [job.id]
        finally:
            anvil.call("evm_setAutomine", True)
            anvil.mine()


async def test_an_upload_that_failed_is_repeated_with_the_same_hash(
    grid: AsyncGrid, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = ServicesClient.upload
    salts = []

    async def fail_once(self: ServicesClient, job: object, salt: bytes | None = None) -> str:
        salts.append(salt)
        if len(salts) == 1:
            raise GridError("the process ends here")
        return await upload(self, job, salt)  # type: ignore[arg-type]

    monkeypatch.setattr(ServicesClient, "upload", fail_once)
    with pytest.raises(GridError, match="ends here"):
        await grid.submit(EXAMPLE, credits=100, key="k")
    await grid.submit(EXAMPLE, credits=100, key="k")
    assert salts[0] == salts[1] is not None


async def test_a_stranger_that_has_the_number_after_a_reorganisation_is_not_returned(
    grid: AsyncGrid, customer: Customer, live: Live, operator: Party
) -> None:
    """Another process of the customer requested the job, and this long-lived grid has read it."""
    await operator.writer.mint(operator.address, 200 * CREDIT)
    connection = await grid._connect()
    for option in ({"key": "k"}, {"cache": True}):
        before = live.grid.anvil.call("evm_snapshot")
        async with AsyncGrid(customer.key, customer.book) as process:
            mine = await process.submit(EXAMPLE, credits=100, **option)
        await connection.refresh_requested()
        assert connection.requested.find(mine.on_chain.definition.definition_hash) == mine.id
        live.grid.anvil.call("evm_revert", before)
        async with AsyncGrid(live.grid.operator_key, customer.book) as other:
            assert (await other.submit(EXAMPLE, credits=100)).id == mine.id
        again = await grid.submit(EXAMPLE, credits=100, **option)
        assert (again.id, again.customer) == (mine.id + 1, grid.address)
        await connection.refresh_requested()
        found = await connection.find_requested(again.on_chain.definition.definition_hash)
        assert found is not None and found.id == again.id
