"""The missing bytes of a log are counted, and readers learn whether the log is complete."""

from __future__ import annotations

import sqlite3

import pytest

from deepgrid.errors import AccessDenied, ServiceError
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.messages import LogPosition
from tests.appending import push_log
from tests.services.support import LATER_TABLES, Grid, Start

NAME = "ab" * 32
CLAIM = 3  # the time of the claim, see MemoryChain.put


async def ship(grid: Grid, at: LogPosition, data: bytes, skipped: int = 0, **more: int) -> LogPosition:
    """Append as the shipper does. With `skipped`, the data stands for that many bytes."""
    after = at.after(data) if not skipped else at.after_gap(data, skipped)
    return await grid.provider.ship_log(1, CLAIM, at, data, after, **more)


async def test_what_is_left_out_is_counted_for_readers_and_for_the_next_shipper(grid: Grid) -> None:
    grid.chain.put(1, NAME)
    at = await ship(grid, LogPosition(), b"head\n", pending=1_000_100)
    assert (at.offset, at.source, at.left_out, at.most) == (5, 5, 0, 64 * 1024 * 1024)
    assert (await grid.customer.read_log(1)).pending == 1_000_100
    at = await ship(grid, at, b"[gap]\n", skipped=1_000_000, pending=100)
    at = await ship(grid, at, b"tail\n", final=True)
    assert (at.offset, at.source, at.left_out) == (16, 1_000_010, 1_000_000)
    restarted = await ship(grid, LogPosition(), b"head\n")
    assert restarted == at, "refused, with the position to continue from"
    read = await grid.customer.read_log(1)
    assert (read.data, read.final, read.closed) == (b"head\n[gap]\ntail\n", True, True)
    assert (read.left_out, read.pending) == (1_000_000, 0)
    followed = await grid.customer.read_log(1, wait_s=1)
    assert followed == read


async def test_the_same_chunk_of_two_supervisors_is_stored_once(grid: Grid) -> None:
    grid.chain.put(1, NAME)
    at = await ship(grid, LogPosition(), b"once\n")
    assert await ship(grid, LogPosition(), b"once\nmore\n") == at
    assert (await grid.customer.read_log(1)).data == b"once\n"


async def test_output_of_an_earlier_claim_never_reaches_the_next_one(grid: Grid) -> None:
    grid.chain.put(1, NAME, claimed_at=9)
    with pytest.raises(AccessDenied):
        await ship(grid, LogPosition(), b"of the claim before\n")
    grid.chain.put(1, NAME, claimed_at=2)
    with pytest.raises(ServiceError) as early:
        await ship(grid, LogPosition(), b"the node is behind\n")
    assert early.value.transient


async def test_a_log_with_announced_output_stays_open_until_its_provider_is_silent(grid: Grid) -> None:
    grid.chain.put(1, NAME, JobStatus.FINISHED, ended_at=int(grid.clock()))
    await ship(grid, LogPosition(), b"head\n", pending=500)
    grid.clock.ahead_s = 300
    assert not (await grid.customer.read_log(1)).final, "the provider still delivers"
    grid.clock.ahead_s = 700
    read = await grid.customer.read_log(1)
    assert (read.data, read.final, read.closed, read.pending) == (b"head\n", True, False, 500)


async def test_a_log_that_its_provider_never_closed_is_over_but_not_closed(grid: Grid) -> None:
    grid.chain.put(1, NAME, JobStatus.FINISHED, ended_at=int(grid.clock()))
    await ship(grid, LogPosition(), b"words\n")
    grid.clock.ahead_s = 31
    read = await grid.customer.read_log(1)
    assert (read.final, read.closed) == (True, False)


async def test_bytes_beyond_the_limit_of_the_service_count_as_left_out(start: Start) -> None:
    grid = await start(max_log_bytes=10)
    grid.chain.put(1, NAME)
    await push_log(grid.provider, 1, 0, b"0123456789abc", final=True)
    read = await grid.customer.read_log(1)
    assert (read.data, read.closed, read.left_out) == (b"0123456789", True, 3)


async def test_a_log_of_an_earlier_release_goes_on(start: Start) -> None:
    grid = await start()
    grid.chain.put(1, NAME)
    await push_log(grid.provider, 1, 0, b"before\n")
    database = sqlite3.connect(grid.settings.secret_file.parent / "services.sqlite")
    for column in ("source", "left_out", "pending"):
        database.execute(f"ALTER TABLE grid_log DROP COLUMN {column}")
    for table in LATER_TABLES:
        database.execute(f"DROP TABLE {table}")
    database.execute("DROP TABLE grid_schema")
    database.close()
    later = await start(grid.chain, migrate=True)
    at = await ship(later, LogPosition(), b"before\n")
    assert (at.offset, at.source, at.left_out) == (7, 7, 0)
    await ship(later, at, b"after\n", final=True)
    read = await later.customer.read_log(1)
    assert (read.data, read.closed, read.left_out) == (b"before\nafter\n", True, 0)
