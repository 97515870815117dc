"""A drill on a real chain: a grid is retired, and new contracts follow it, with all credits to the wei."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.signing.request_signing import Domain
from deepgrid.services.storage.database import Database
from deepgrid.services.storage.grid_of_jobs import note_grid
from tests.chain.grid import CREDIT, Grid, People, gather_people, running_grid
from tests.cli.live import Dps, finished

URLS = ("--definitions-url", "http://127.0.0.1:1", "--logs-url", "http://127.0.0.1:1")


@pytest.fixture
def grid(tmp_path: Path) -> Iterator[Grid]:
    with running_grid(tmp_path / "chain") as running:
        yield running


async def test_a_grid_moves_to_new_contracts_with_all_credits(grid: Grid, forker: Path, tmp_path: Path) -> None:
    old_file, new_file = grid.book.save(tmp_path / "grid.json"), tmp_path / "new.json"
    dps, admin = Dps(tmp_path, old_file, grid.operator_key, forker=forker), Wallet.load(grid.operator_key).address
    async with await Chain.connect(grid.book) as chain:
        people = await gather_people(grid, chain, "old")
        finished_id, waiting_id = await people.running(), await people.request()
        await people.provider.settle(finished_id, JobStatus.FINISHED, 1)
        holders = [people.customer.address, people.provider.address, admin]

        too_early = await dps.run("operator", "deploy", "--book", new_file, "--rpc-url", grid.anvil.url, *URLS,
                                  "--operator", admin)  # fmt: skip
        assert too_early.status == 0, too_early.err
        early = await dps.run("operator", "move-credits", "--from", old_file, "--book", new_file)
        assert (early.status, "still holds" in early.err, "dps operator retire" in early.err) == (2, True, True)
        new_file.unlink()

        await retire(dps, people, waiting_id)
        had = {holder: await chain.balance(holder) for holder in holders}
        assert await chain.balance(grid.book.meta_scheduler) == 0
        assert sum(had.values()) == 10_000 * CREDIT

        deployed = await dps.run("operator", "deploy", "--book", new_file, "--rpc-url", grid.anvil.url, *URLS,
                                 "--operator", admin)  # fmt: skip
        assert deployed.status == 0, deployed.err
        await people.customer.transfer(people.provider.address, 5 * CREDIT)  # of the old credits, which no longer count
    async with await Chain.connect(AddressBook.load(new_file)) as chain:
        for _ in range(2):
            moved = await dps.run("operator", "move-credits", "--from", old_file, "--book", new_file)
            assert moved.status == 0, moved.err
            assert {holder: await chain.balance(holder) for holder in holders} == had
        assert "0 credits were minted; all holders have what they had." in moved.out
        assert "dps provider register CLUSTER" in moved.out
        people = await gather_people(grid, chain, "new")
        job_id = await people.running()
        await people.provider.settle(job_id, JobStatus.FINISHED, 1)
        settled = await chain.settlement(job_id)
        assert settled is not None and settled.paid_wei > 0
        await the_old_database_is_refused(dps, grid.book, new_file, chain)


async def the_old_database_is_refused(dps: Dps, old: AddressBook, new_file: Path, chain: Chain) -> None:
    """It has receipts and files of jobs with the numbers of the new ones."""
    database = Database(f"sqlite:///{dps.home}/services.sqlite")
    await database.prepare()
    await note_grid(database, Domain(old.chain_id, old.meta_scheduler), chain.job_count)
    await database.aclose()
    store = ("--database", f"sqlite:///{dps.home}/services.sqlite", "--secret-file", dps.home / "secret")
    refused = await dps.run("services", "serve", *store, "--port", "0", "--book", new_file)
    assert (refused.status, "another grid" in refused.err, old.meta_scheduler in refused.err) == (2, True, True)


async def retire(dps: Dps, people: People, waiting_id: int) -> None:
    """Retire the grid; the customer cancels the last job while the command waits for it."""
    retiring = await dps.start("operator", "retire")
    assert retiring.stdout is not None
    said = b""
    while b"1 job is not over" not in said:
        said += await asyncio.wait_for(retiring.stdout.readline(), 60)
    assert not await people.chain.accepts_requests()
    await people.customer.cancel_job(waiting_id)
    done = await finished(retiring)
    assert done.status == 0, done.err
    assert "The platform's cut is withdrawn." in done.out
    again = await dps.run("operator", "retire")
    assert (again.status, "withdrawn" in again.out) == (0, False)


async def test_books_that_are_not_of_two_grids_are_refused(grid: Grid, forker: Path, tmp_path: Path) -> None:
    file = grid.book.save(tmp_path / "grid.json")
    said = await Dps(tmp_path, file, grid.operator_key, forker=forker).run("operator", "move-credits", "--from", file)
    assert (said.status, "not of two grids" in said.err) == (2, True)
