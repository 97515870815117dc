"""The customer of a job reads its file again, without secrets, and notes tags on it. No other party does."""

from __future__ import annotations

import json

import pytest

from deepgrid.errors import AccessDenied, NotFound
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.cleanup import DAY_S, Retention, clean_up
from deepgrid.services.kept_messages import JobMark, SweepPlace
from deepgrid.services.storage import kept_rows
from deepgrid.services.storage.kept_rows import KeptJob
from tests.attacks.http_support import rows
from tests.services.support import SECRET, Grid, a_job, a_secret_job


async def test_the_file_outlives_the_definition_and_hides_its_secrets(grid: Grid) -> None:
    definition_hash = await grid.customer.upload(a_secret_job())
    grid.chain.put(1, definition_hash, JobStatus.FINISHED)
    for _ in range(2):
        grid.clock.ahead_s += 400
        await clean_up(grid.context, Retention())
    kept = await grid.customer.kept_file(1)
    assert kept.masked == ["steps[0].run.container.password"]
    assert SECRET not in kept.definition
    assert json.loads(kept.definition)["steps"][0]["run"]["container"]["password"] == "***"


async def test_the_file_goes_with_the_log_and_not_before(grid: Grid) -> None:
    hashes = [await grid.customer.upload(a_job(f"echo {n}")) for n in range(3)]
    grid.chain.put(1, hashes[0], JobStatus.RUNNING)
    grid.chain.put(2, hashes[1], JobStatus.FINISHED)
    grid.clock.ahead_s += 2 * DAY_S
    await clean_up(grid.context, Retention())
    assert await rows(grid, KeptJob) == 2, "no job names the third"
    grid.clock.ahead_s += 400
    await clean_up(grid.context, Retention())
    grid.clock.ahead_s += 29 * DAY_S
    await clean_up(grid.context, Retention())
    assert await rows(grid, KeptJob) == 2
    grid.clock.ahead_s += 2 * DAY_S
    await clean_up(grid.context, Retention())
    grid.clock.ahead_s = 0
    assert (await grid.customer.kept_file(1)).masked == [], "it runs"
    with pytest.raises(NotFound):
        await grid.customer.kept_file(2)


async def test_the_oldest_files_go_beyond_the_limit(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (1, 2, 3):
        grid.chain.put(number, await grid.customer.upload(a_job(f"echo {number}")), JobStatus.FINISHED)
        grid.clock.ahead_s += 10
    monkeypatch.setattr(kept_rows, "MOST_BYTES_PER_CUSTOMER", 600)
    for _ in range(3):
        grid.clock.ahead_s += 400
        await clean_up(grid.context, Retention())
    assert 0 < await rows(grid, KeptJob) < 3


async def test_marks_are_written_replaced_and_found(grid: Grid) -> None:
    first, second = [await grid.customer.upload(a_job(f"echo {n}")) for n in range(2)]
    place = SweepPlace(id="0" * 16, name="wing", at=1, of=2, parameters=[{"ANGLE": "3"}])
    await grid.customer.write_marks(
        [
            JobMark(definition_hash=first, tags={"project": "wing"}, note="first try", sweep=place),
            JobMark(definition_hash=second, tags={"project": "hull", "urgent": ""}),
        ]
    )
    assert set(await grid.customer.marks()) == {first, second}
    assert (await grid.customer.marks(tags=["project=wing"]))[first].note == "first try"
    assert set(await grid.customer.marks(tags=["project", "urgent"])) == {second}
    assert (await grid.customer.marks(sweep="0" * 16))[first].sweep == place
    await grid.customer.write_marks([JobMark(definition_hash=first)])
    assert set(await grid.customer.marks()) == {second}
    assert await grid.rival.marks() == {}


async def test_marks_come_in_pages(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepgrid.services.handlers.kept_jobs.PAGE", 2)
    hashes = [await grid.customer.upload(a_job(f"echo {n}")) for n in range(5)]
    await grid.customer.write_marks([JobMark(definition_hash=one, tags={"n": str(n)}) for n, one in enumerate(hashes)])
    assert set(await grid.customer.marks()) == set(hashes)
    assert set(await grid.customer.marks(tags=["n=4"])) == {hashes[4]}


async def test_an_upload_that_comes_again_keeps_the_mark(grid: Grid) -> None:
    salt = bytes(32)
    definition_hash = await grid.customer.upload(a_job(), salt)
    await grid.customer.write_marks([JobMark(definition_hash=definition_hash, note="mine")])
    await grid.customer.upload(a_job(), salt)
    assert (await grid.customer.marks())[definition_hash].note == "mine"


async def test_only_wallets_and_session_keys_with_the_right_may_mark(grid: Grid) -> None:
    definition_hash = await grid.customer.upload(a_job())
    with pytest.raises((AccessDenied, NotFound)):
        await grid.rival.write_marks([JobMark(definition_hash=definition_hash, note="theirs")])
    assert await grid.customer.marks() == {}
