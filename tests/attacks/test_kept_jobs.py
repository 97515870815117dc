"""Other parties ask for the file of a customer's job, and for what the customer noted about it."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from sqlalchemy import select

from deepgrid.errors import AccessDenied, NotFound
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.kept_messages import MOST_PARAMETER_BYTES, JobMark, SweepPlace
from deepgrid.services.storage.kept_rows import KeptJob, file_of
from tests.attacks.http_support import rows
from tests.services.support import ACCOUNTS, SECRET, Grid, Start, a_job, a_secret_job, client_of, session_key


@pytest.mark.attack(
    "the file of another customer's job, by its number", attacker="another customer", gain="nothing",
    defence="only the customer whom the chain names for the job, and who uploaded the definition, may read it",
)  # fmt: skip
async def test_a_job_number_of_another_customer_opens_no_file(grid: Grid) -> None:
    grid.chain.put(1, await grid.customer.upload(a_job()), JobStatus.FINISHED)
    for other in (grid.rival, grid.provider, grid.other_provider, grid.operator):
        with pytest.raises(NotFound, match="no file of job 1 is kept for"):
            await other.kept_file(1)


@pytest.mark.attack(
    "the file of another customer, by a job that names its public hash", attacker="another customer", gain="nothing",
    defence="the uploader of a definition never changes, and is checked in addition to the job's customer",
)  # fmt: skip
async def test_a_copied_hash_opens_no_file(grid: Grid) -> None:
    definition_hash = await grid.customer.upload(a_job())
    grid.chain.put(2, definition_hash, JobStatus.FINISHED, customer=ACCOUNTS["rival"].address)
    with pytest.raises(NotFound, match="no file of job 2 is kept for"):
        await grid.rival.kept_file(2)


@pytest.mark.attack(
    "tags, notes and parameters of another customer's jobs, by hash and by sweep", attacker="another customer",
    gain="nothing", defence="each query is bound to the signer; marks are taken from the uploader only",
)  # fmt: skip
async def test_marks_are_their_customers(grid: Grid) -> None:
    definition_hash = await grid.customer.upload(a_job())
    place = SweepPlace(id="a" * 16, name="wing", at=1, of=1)
    await grid.customer.write_marks([JobMark(definition_hash=definition_hash, note="mine", sweep=place)])
    assert await grid.rival.marks(sweep="a" * 16) == {}
    own = await grid.rival.upload(a_job("echo rival"))
    with pytest.raises(NotFound, match="uploaded no definition"):
        await grid.rival.write_marks([JobMark(definition_hash=own), JobMark(definition_hash=definition_hash)])
    await grid.rival.write_marks([JobMark(definition_hash=own, note="rival's", sweep=place)])
    assert set(await grid.customer.marks(sweep="a" * 16)) == {definition_hash}
    assert set(await grid.rival.marks(sweep="a" * 16)) == {own}
    assert (await grid.customer.marks())[definition_hash].note == "mine"


@pytest.mark.attack(
    "the secrets of a job in the database, with the key of its encryption, after the job is over",
    attacker="a thief of the operator's disk", gain="the definition without its secret fields",
    defence="what is kept for the customer holds `***` in their place; the whole definition is deleted",
)  # fmt: skip
async def test_kept_files_hold_no_secrets(grid: Grid) -> None:
    definition_hash = await grid.customer.upload(a_secret_job())
    async with grid.context.database.read() as session:
        row = (await session.scalars(select(KeptJob))).one()
    assert row.definition_hash == definition_hash
    assert SECRET not in file_of(grid.context.vault, row)
    assert b"debian" not in row.sealed, "it is encrypted"


@pytest.mark.attack(
    "a stolen session key that may only read is used to change notes", attacker="a web page",
    gain="nothing", defence="a session key changes marks only with the right `store`, and reads with `read`",
)  # fmt: skip
async def test_rights_of_session_keys_hold_for_marks(start: Start) -> None:
    grid = await start()
    definition_hash = await grid.customer.upload(a_job())
    reader, writer = (client_of(grid.url, session_key(rights=rights)) for rights in ("read", "store"))
    async with reader, writer:
        with pytest.raises(AccessDenied, match="no right to store"):
            await reader.write_marks([JobMark(definition_hash=definition_hash, note="x")])
        await writer.write_marks([JobMark(definition_hash=definition_hash, note="x")])
        with pytest.raises(AccessDenied, match="no right to read"):
            await writer.marks()
        assert set(await reader.marks()) == {definition_hash}


@pytest.mark.attack(
    "notes and parameters without an end", attacker="a customer", gain="a few KiB per paid definition",
    defence="numbers and lengths are limited, and marks need a stored definition",
)  # fmt: skip
async def test_marks_are_bounded(grid: Grid) -> None:
    definition_hash = await grid.customer.upload(a_job())
    for faulty in (
        {"note": "x" * 501},
        {"tags": {f"t{n}": "" for n in range(17)}},
        {"tags": {"a b": ""}},
        {"tags": {"a": "x" * 81}},
    ):
        with pytest.raises(ValidationError):
            JobMark(definition_hash=definition_hash, **faulty)  # type: ignore[arg-type]
    with pytest.raises(ValidationError):
        SweepPlace(id="a" * 16, name="w", at=1, of=1, parameters=[{"A": "x" * MOST_PARAMETER_BYTES}])
    assert await rows(grid, KeptJob) == 1
