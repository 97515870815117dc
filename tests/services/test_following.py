"""Followers of one log share one reader. Each gets every byte once and in order, whatever the others do."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import event

from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.admission import Limits
from deepgrid.services.following import LOOK_AGAIN_S, Piece
from deepgrid.services.following.log_tail import TAIL_BYTES
from deepgrid.services.following.log_tails import PAGE_BYTES
from deepgrid.services.refusal import Refusal
from tests.appending import push_log
from tests.services.support import ACCOUNTS, LATER_TABLES, Grid, Start
from tests.waiting import until

NAME = "0" * 64
CUSTOMER = ACCOUNTS["customer"].address


class Follower:
    """Collects the pieces that one follower gets."""

    def __init__(self, grid: Grid, offset: int = 0, reader: str = CUSTOMER) -> None:
        self.pieces: list[Piece] = []
        self.task = asyncio.create_task(self._collect(grid, offset, reader))

    async def _collect(self, grid: Grid, offset: int, reader: str) -> None:
        async with aclosing(grid.context.log_tails.follow(1, reader, offset)) as pieces:
            async for piece in pieces:
                self.pieces.append(piece)

    @property
    def text(self) -> bytes:
        return b"".join(piece.data for piece in self.pieces)

    async def has(self, text: bytes) -> bool:
        if self.task.done():
            self.task.result()
        return self.text == text

    async def end(self) -> bytes:
        await asyncio.wait_for(self.task, 60)
        return self.text


@contextmanager
def reads_of_chunks(grid: Grid) -> Iterator[list[str]]:
    """Yield the statements that read chunks while the context lasts."""
    found: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("SELECT") and "grid_log_chunk" in statement:
            found.append(statement)

    engine = grid.context.database._engine.sync_engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(engine, "before_cursor_execute", note)


async def all_have(followers: list[Follower], text: bytes) -> bool:
    return all([await follower.has(text) for follower in followers])


async def test_500_followers_cost_one_read_per_chunk_and_one_word_of_the_chain(grid: Grid) -> None:
    grid.chain.put(1, NAME, JobStatus.RUNNING)
    await push_log(grid.provider, 1, 0, b"0\n")
    started, asked_before = time.monotonic(), grid.chain.calls
    with reads_of_chunks(grid) as reads:
        followers = [Follower(grid) for _ in range(500)]
        text = b"0\n"
        for number in range(1, 11):
            await push_log(grid.provider, 1, len(text), line := b"%d\n" % number, final=number == 10)
            text += line
            await until(partial(all_have, followers, text))
    assert {await follower.end() for follower in followers} == {text}
    looks = 1 + int((time.monotonic() - started) / LOOK_AGAIN_S)  # the reader also polls without news
    assert len(reads) <= 11 + looks
    assert grid.chain.calls - asked_before <= 1 + 10 + looks  # the first follower, ten appends, the reader


async def test_pieces_tell_where_and_when_they_were_stored(grid: Grid) -> None:
    grid.chain.put(1, NAME, JobStatus.RUNNING)
    before = time.time_ns()
    follower = Follower(grid)
    await push_log(grid.provider, 1, 0, b"one")
    await until(lambda: follower.has(b"one"))
    await push_log(grid.provider, 1, 3, b"two", final=True)
    await follower.end()
    first, *_, last = follower.pieces
    assert (first.offset, first.claimed_at, first.final, last.end, last.final) == (0, 3, False, 6, True)
    assert before <= first.at_ns <= last.at_ns <= time.time_ns()


async def test_older_output_comes_in_small_pages_and_memory_is_bounded(grid: Grid) -> None:
    grid.chain.put(1, NAME, JobStatus.RUNNING)
    early = Follower(grid)
    text = b"0123456789abcde\n" * 200_000
    for start in range(0, len(text), 100_000):
        await push_log(grid.provider, 1, start, text[start : start + 100_000])
    await until(lambda: early.has(text))
    late, near_the_end = Follower(grid), Follower(grid, -10)
    await until(lambda: late.has(text))
    await until(lambda: near_the_end.has(text[-10:]))
    assert max(len(piece.data) for piece in late.pieces) <= PAGE_BYTES
    assert all(tail._tail_cost <= TAIL_BYTES for tail in grid.context.log_tails._tasks)
    await push_log(grid.provider, 1, len(text), b"", final=True)
    assert await late.end() == await early.end() == text


async def test_a_follower_goes_on_with_the_next_claim(grid: Grid) -> None:
    grid.chain.put(1, NAME, JobStatus.RUNNING)
    await push_log(grid.provider, 1, 0, b"first claim, ")
    follower = Follower(grid)
    await until(lambda: follower.has(b"first claim, "))
    grid.chain.put(1, NAME, JobStatus.RUNNING, provider=ACCOUNTS["other_provider"].address, claimed_at=9)
    await push_log(grid.other_provider, 1, 0, b"second ")
    await until(lambda: follower.has(b"first claim, second "))
    await push_log(grid.other_provider, 1, 7, b"claim", final=True)
    assert await follower.end() == b"first claim, second claim"
    assert [(piece.claimed_at, piece.offset) for piece in follower.pieces] == [(3, 0), (9, 0), (9, 7)]


async def test_a_slow_follower_gets_all_of_an_earlier_claim_first(grid: Grid) -> None:
    grid.chain.put(1, NAME, JobStatus.RUNNING)
    text = b"x" * (3 * PAGE_BYTES)
    await push_log(grid.provider, 1, 0, text)
    async with aclosing(grid.context.log_tails.follow(1, CUSTOMER)) as pieces:
        found = [await anext(pieces)]
        grid.chain.put(1, NAME, JobStatus.RUNNING, provider=ACCOUNTS["other_provider"].address, claimed_at=9)
        await push_log(grid.other_provider, 1, 0, b"second", final=True)
        [tail] = grid.context.log_tails._tasks

        async def is_told() -> bool:
            return tail.job.claimed_at == 9

        await until(is_told)
        found += [piece async for piece in pieces]
    assert b"".join(piece.data for piece in found if piece.claimed_at == 3) == text
    assert [piece.data for piece in found if piece.claimed_at == 9] == [b"second"]


async def test_a_log_ends_with_its_job_for_followers_too(grid: Grid) -> None:
    grid.chain.put(1, NAME, JobStatus.RUNNING)
    await push_log(grid.provider, 1, 0, b"last words")
    follower = Follower(grid)
    await until(lambda: follower.has(b"last words"))
    grid.chain.put(1, NAME, JobStatus.FAILED, ended_at=int(grid.clock()))
    grid.clock.ahead_s = 31
    assert await follower.end() == b"last words"
    assert follower.pieces[-1].final


async def test_a_silent_chain_does_not_disturb_followers(grid: Grid) -> None:
    grid.chain.put(1, NAME, JobStatus.RUNNING)
    follower = Follower(grid)
    await until(lambda: joined(grid))
    grid.chain.down = True
    calls = grid.chain.calls

    async def is_asked() -> bool:
        return grid.chain.calls > calls + 1

    await until(is_asked)
    with pytest.raises(Refusal, match="the chain does not answer"):
        await anext(grid.context.log_tails.follow(2, CUSTOMER))
    grid.chain.down = False
    await push_log(grid.provider, 1, 0, b"still here", final=True)
    assert await follower.end() == b"still here"


async def test_only_the_customer_follows(grid: Grid) -> None:
    grid.chain.put(1, NAME, JobStatus.RUNNING)
    stranger = ACCOUNTS["rival"].address
    with pytest.raises(Refusal, match="only its customer") as caught:
        await anext(grid.context.log_tails.follow(1, stranger))
    assert caught.value.status == 403
    follower = Follower(grid)
    await until(lambda: joined(grid))
    with pytest.raises(Refusal, match="only its customer"):
        await anext(grid.context.log_tails.follow(1, stranger))
    with pytest.raises(Refusal) as caught:
        await anext(grid.context.log_tails.follow(99, CUSTOMER))
    assert caught.value.status == 404
    grid.chain.put(1, NAME, JobStatus.RUNNING, customer=stranger)  # after a reorganisation

    async def is_known() -> bool:
        return all(tail.job.customer == stranger for tail in grid.context.log_tails._tasks)

    await until(is_known)
    await push_log(grid.provider, 1, 0, b"not for everybody")
    with pytest.raises(Refusal, match="only its customer"):
        await follower.end()
    assert follower.text == b""


async def test_followers_end_when_the_service_stops(grid: Grid) -> None:
    grid.chain.put(1, NAME, JobStatus.RUNNING)
    follower = Follower(grid)
    waiting = asyncio.create_task(grid.customer.read_log(1, wait_s=20))

    async def both() -> bool:
        return grid.context.log_tails.all_followers == 2

    await until(both)
    grid.context.log_tails.stop()
    with pytest.raises(Refusal, match="the service stops") as caught:
        await follower.end()
    assert caught.value.status == 503
    with pytest.raises(Exception, match="the service stops"):
        await waiting
    with pytest.raises(Refusal, match="the service stops"):
        await anext(grid.context.log_tails.follow(1, CUSTOMER))


async def test_the_reader_stays_between_polls_and_ends_when_nobody_comes(grid: Grid) -> None:
    grid.chain.put(1, NAME, JobStatus.RUNNING)
    await push_log(grid.provider, 1, 0, b"abc")
    with reads_of_chunks(grid) as reads:
        for _ in range(20):
            assert (await grid.customer.read_log(1, wait_s=5)).data == b"abc"
    assert len(reads) < 10

    async def is_gone() -> bool:
        return not grid.context.log_tails._tasks

    await until(is_gone)


async def test_waiting_requests_do_not_count_as_running(start: Start) -> None:
    grid = await start(limits=Limits(running_per_address=4, followers_per_job=8))
    grid.chain.put(1, NAME, JobStatus.RUNNING)
    waiting = []
    for number in range(1, 9):
        waiting.append(asyncio.create_task(grid.customer.read_log(1, wait_s=20)))

        async def all_wait(number: int = number) -> bool:
            return grid.context.admission.followers_by_job.all_held == number

        await until(all_wait)
    assert grid.context.admission.running.all_held == 0
    await push_log(grid.provider, 1, 0, b"news", final=True)
    assert {(await chunk).data for chunk in waiting} == {b"news"}


async def test_a_database_of_an_earlier_release_gets_the_missing_column(start: Start, tmp_path: Path) -> None:
    grid = await start()
    grid.chain.put(1, NAME, JobStatus.RUNNING)
    await push_log(grid.provider, 1, 0, b"old, ")
    with sqlite3.connect(tmp_path / "services.sqlite", timeout=30) as old:
        old.execute("ALTER TABLE grid_log_chunk DROP COLUMN at_ns")
        for table in LATER_TABLES:
            old.execute(f"DROP TABLE {table}")
        old.execute("DROP TABLE grid_schema")
        [(updated_at,)] = old.execute("SELECT updated_at FROM grid_log")
    old.close()
    again = await start(grid.chain, migrate=True)
    await push_log(again.provider, 1, 5, b"new", final=True)
    follower = Follower(again)
    assert await follower.end() == b"old, new"
    assert updated_at <= follower.pieces[0].at_ns // 10**9 <= follower.pieces[1].at_ns // 10**9


async def joined(grid: Grid) -> bool:
    return grid.context.log_tails.all_followers > 0
