"""A log has each byte once and in order. Only its customer reads it, live and to its end."""

from __future__ import annotations

import asyncio
import time

import pytest
from sqlalchemy import BigInteger, cast, update

from deepgrid.errors import AccessDenied, InputError, NotFound
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.handlers.logs import MOST_TIMES
from deepgrid.services.storage.database import LogChunk
from tests.appending import push_log
from tests.services.support import ACCOUNTS, Grid, Start, a_job, waits
from tests.waiting import until

NAME = "0" * 64


async def test_what_the_provider_pushes_the_customer_reads(grid: Grid) -> None:
    grid.chain.put(1, NAME)
    assert await push_log(grid.provider, 1, 0, b"hello ") == 6
    assert await push_log(grid.provider, 1, 6, "wörld\x00\xff".encode(), final=True) == 15
    whole = await grid.customer.read_log(1)
    assert (whole.data, whole.next_offset, whole.final) == ("hello wörld\x00\xff".encode(), 15, True)
    assert (await grid.customer.read_log(1, 6)).data.decode() == "wörld\x00\xff"


async def test_only_the_customer_reads_and_only_the_provider_writes(grid: Grid) -> None:
    grid.chain.put(1, NAME)
    await push_log(grid.provider, 1, 0, b"mine")
    for stranger in (grid.rival, grid.provider, grid.operator):
        with pytest.raises(AccessDenied, match="only its customer"):
            await stranger.read_log(1)
    for stranger in (grid.rival, grid.customer, grid.other_provider):
        with pytest.raises(AccessDenied, match="not a job of"):
            await push_log(stranger, 1, 4, b"forged")
    with pytest.raises(NotFound):
        await grid.customer.read_log(2)
    assert (await grid.customer.read_log(1)).data == b"mine"


@pytest.mark.parametrize("status", [JobStatus.PENDING, JobStatus.META_SCHEDULED])
async def test_no_provider_writes_before_the_claim(grid: Grid, status: JobStatus) -> None:
    grid.chain.put(1, NAME, status)
    with pytest.raises(AccessDenied):
        await push_log(grid.provider, 1, 0, b"x")


async def test_repeated_and_overlapping_chunks_are_stored_once(grid: Grid) -> None:
    grid.chain.put(1, NAME)
    for offset, data in ((0, b"abc"), (0, b"abc"), (1, b"bcde"), (2, b"c"), (0, b""), (5, b"f")):
        await push_log(grid.provider, 1, offset, data)
    assert (await grid.customer.read_log(1)).data == b"abcdef"


async def test_a_gap_is_refused_with_the_offset_to_go_on_from(grid: Grid) -> None:
    grid.chain.put(1, NAME)
    await push_log(grid.provider, 1, 0, b"abc")
    assert await push_log(grid.provider, 1, 10, b"xyz", final=True) == 3
    chunk = await grid.customer.read_log(1)
    assert (chunk.data, chunk.final) == (b"abc", False)


async def test_two_pushes_at_once_leave_each_byte_once(grid: Grid) -> None:
    grid.chain.put(1, NAME)
    text = bytes(range(256))
    await asyncio.gather(*(push_log(grid.provider, 1, 0, text[:n]) for n in (256, 10, 100, 200, 256)))
    assert (await grid.customer.read_log(1)).data == text


async def test_large_output_is_pushed_and_read_in_pieces(grid: Grid) -> None:
    grid.chain.put(1, NAME)
    text = b"0123456789" * 250_000
    assert await push_log(grid.provider, 1, 0, text, final=True) == len(text)
    first = await grid.customer.read_log(1)
    assert (len(first.data), first.final) == (1024 * 1024, False)
    assert b"".join(await pieces(grid)) == text
    assert (await grid.customer.read_log(1, 2_499_995)).data == b"56789"


async def test_a_log_is_kept_up_to_a_bound(start: Start) -> None:
    grid = await start(max_log_bytes=10)
    grid.chain.put(1, NAME)
    assert await push_log(grid.provider, 1, 0, b"12345678") == 8
    assert await push_log(grid.provider, 1, 8, b"abcdef") == 14
    assert await push_log(grid.provider, 1, 14, b"ghi", final=True) == 17
    chunk = await grid.customer.read_log(1)
    assert (chunk.data, chunk.final) == (b"12345678ab", True)


@pytest.mark.parametrize(
    ("offset", "first", "found"), [(-4, 11, b"last"), (-15, 0, b"first page last"), (-16, 0, b"first page last"),
                                   (-(2**53) + 1, 0, b"first page last"), (-1, 14, b"t"), (15, 15, b""), (99, 99, b"")]
)  # fmt: skip
async def test_a_log_is_read_from_its_end(grid: Grid, offset: int, first: int, found: bytes) -> None:
    grid.chain.put(1, NAME)
    await push_log(grid.provider, 1, 0, b"first page ")
    await push_log(grid.provider, 1, 11, b"last")
    chunk = await grid.customer.read_log(1, offset)
    assert (chunk.data, chunk.offset, chunk.next_offset) == (found, first, first + len(found))
    await push_log(grid.provider, 1, 15, b"!", final=True)
    if offset < 0:
        after = await grid.customer.read_log(1, chunk.next_offset)
        assert (after.data, after.offset, after.final) == (b"!", 15, True), "a reader continues from there"


async def test_a_tail_beyond_one_answer_goes_on(grid: Grid) -> None:
    grid.chain.put(1, NAME)
    text = b"0123456789" * 250_000
    await push_log(grid.provider, 1, 0, text, final=True)
    first = await grid.customer.read_log(1, -2_000_000)
    assert (first.offset, first.next_offset, first.final) == (500_000, 500_000 + 1024 * 1024, False)
    second = await grid.customer.read_log(1, first.next_offset)
    assert (first.data + second.data, second.final) == (text[500_000:], True)


async def test_the_end_of_a_capped_log_is_that_of_what_is_kept(start: Start) -> None:
    grid = await start(max_log_bytes=10)
    grid.chain.put(1, NAME)
    await push_log(grid.provider, 1, 0, b"12345678")
    await push_log(grid.provider, 1, 8, b"abcdefgh", final=True)
    chunk = await grid.customer.read_log(1, -3)
    assert (chunk.data, chunk.offset, chunk.next_offset, chunk.final) == (b"8ab", 7, 10, True)


async def test_a_reader_waits_at_the_end_of_an_empty_log(grid: Grid) -> None:
    grid.chain.put(1, NAME)
    empty = await grid.customer.read_log(1, -100)
    assert (empty.data, empty.offset, empty.next_offset, empty.final) == (b"", 0, 0, False)
    reading = asyncio.create_task(grid.customer.read_log(1, -4, wait_s=20))
    await until(lambda: waits(grid, 1))
    await push_log(grid.provider, 1, 0, b"good news")
    chunk = await reading
    assert (chunk.data, chunk.offset) == (b"news", 5)


async def test_the_end_of_a_log_is_that_of_the_present_claim(grid: Grid) -> None:
    grid.chain.put(1, NAME)
    await push_log(grid.provider, 1, 0, b"a long output of the first claim", final=True)
    grid.chain.put(1, NAME, provider=ACCOUNTS["other_provider"].address, claimed_at=9)
    chunk = await grid.customer.read_log(1, -5)
    assert (chunk.data, chunk.offset, chunk.claimed_at) == (b"", 0, 9)
    await push_log(grid.other_provider, 1, 0, b"second")
    chunk = await grid.customer.read_log(1, -5)
    assert (chunk.data, chunk.offset, chunk.claimed_at) == (b"econd", 1, 9)


@pytest.mark.parametrize("offset", [-(2**53), 2**53, -(10**30)])
async def test_an_offset_beyond_all_sizes_is_refused(grid: Grid, offset: int) -> None:
    grid.chain.put(1, NAME)
    with pytest.raises(InputError):
        await grid.customer.read_log(1, offset)


async def test_a_provider_writes_at_an_offset_from_the_start(grid: Grid) -> None:
    grid.chain.put(1, NAME)
    with pytest.raises(InputError):
        await push_log(grid.provider, 1, -1, b"x")


async def test_a_waiting_reader_wakes_when_output_comes(grid: Grid) -> None:
    grid.chain.put(1, NAME)
    reading = asyncio.create_task(grid.customer.read_log(1, wait_s=20))
    await until(lambda: waits(grid, 1))
    start = time.monotonic()
    await push_log(grid.provider, 1, 0, b"news")
    assert (await reading).data == b"news"
    assert time.monotonic() - start < 10


async def test_a_waiting_reader_gets_an_empty_answer_in_time(grid: Grid) -> None:
    grid.chain.put(1, NAME)
    start = time.monotonic()
    chunk = await grid.customer.read_log(1, wait_s=0.5)
    assert (chunk.data, chunk.final) == (b"", False)
    assert time.monotonic() - start >= 0.5


async def test_a_waiting_reader_sees_the_end(grid: Grid) -> None:
    grid.chain.put(1, NAME)
    await push_log(grid.provider, 1, 0, b"all")
    reading = asyncio.create_task(grid.customer.read_log(1, 3, wait_s=20))
    await until(lambda: waits(grid, 1))
    await push_log(grid.provider, 1, 3, b"", final=True)
    chunk = await reading
    assert (chunk.data, chunk.final) == (b"", True)


async def test_the_output_of_a_second_claim_is_a_log_of_its_own(grid: Grid) -> None:
    grid.chain.put(1, NAME)
    await push_log(grid.provider, 1, 0, b"first claim", final=True)
    first = await grid.customer.read_log(1)
    grid.chain.put(1, NAME, provider=ACCOUNTS["other_provider"].address, claimed_at=9)
    with pytest.raises(AccessDenied):
        await push_log(grid.provider, 1, 11, b"too late")
    between = await grid.customer.read_log(1, first.next_offset)
    assert (between.data, between.final, between.claimed_at) == (b"", False, 9)
    await push_log(grid.other_provider, 1, 0, b"second")
    second = await grid.customer.read_log(1)
    assert (first.claimed_at, second.claimed_at, second.data) == (3, 9, b"second")


async def test_a_log_ends_with_its_job_even_if_the_provider_never_ended_it(grid: Grid) -> None:
    now = int(grid.clock())
    grid.chain.put(1, NAME, JobStatus.FAILED, ended_at=now)
    await push_log(grid.provider, 1, 0, b"last words")
    assert not (await grid.customer.read_log(1)).final, "the provider may still ship what is left"
    grid.clock.ahead_s = 31
    chunk = await grid.customer.read_log(1)
    assert (chunk.data, chunk.final) == (b"last words", True)


async def test_a_job_that_ships_no_output_has_an_empty_log_that_ends_with_it(grid: Grid) -> None:
    definition_hash = await grid.customer.upload(a_job(enable_logging=False))
    grid.chain.put(1, definition_hash, JobStatus.RUNNING)
    assert not (await grid.customer.read_log(1)).final
    grid.chain.put(1, definition_hash, JobStatus.FINISHED, ended_at=int(grid.clock()))
    assert (await grid.customer.read_log(1)).final
    grid.chain.put(2, definition_hash, JobStatus.CANCELLED, claimed_at=0, provider=None)
    assert (await grid.customer.read_log(2)).final, "never claimed: nothing will come"


async def test_logs_are_encrypted_at_rest(grid: Grid) -> None:
    grid.chain.put(1, NAME)
    await push_log(grid.provider, 1, 0, b"plainly visible")
    folder = grid.settings.secret_file.parent
    assert b"plainly visible" not in b"".join(path.read_bytes() for path in folder.glob("services.sqlite*"))


async def pieces(grid: Grid) -> list[bytes]:
    """Read the whole log, one item per answer."""
    found, offset, final = [], 0, False
    while not final:
        chunk = await grid.customer.read_log(1, offset, wait_s=5)
        found.append(chunk.data)
        offset, final = chunk.next_offset, chunk.final
    return found


async def stored_over(grid: Grid, chunks: int, chunks_per_s: int) -> None:
    """Store this many chunks of four bytes, the first ones in the second 1000 of unix time."""
    grid.chain.put(1, NAME, JobStatus.RUNNING)
    offset = 0
    for number in range(chunks):
        offset = await push_log(grid.provider, 1, offset, b"%03d\n" % number, final=number == chunks - 1)
    async with grid.context.database.write() as session:
        second = 1000 + LogChunk.offset / (4 * chunks_per_s)
        await session.execute(update(LogChunk).values(at_ns=cast(second, BigInteger) * 10**9))


async def test_an_answer_says_when_its_bytes_were_stored(grid: Grid) -> None:
    await stored_over(grid, 2 * MOST_TIMES - 1, chunks_per_s=2)
    whole = await grid.customer.read_log(1)
    assert whole.times == (*((1000 + at, 8) for at in range(MOST_TIMES - 1)), (1000 + MOST_TIMES - 1, 4))
    assert [at for _, at in whole.parts()] == [at for at, _ in whole.times]


@pytest.mark.parametrize("wait_s", [0.0, 1.0])
async def test_output_of_many_seconds_comes_in_several_answers(grid: Grid, wait_s: float) -> None:
    total = MOST_TIMES + 5
    await stored_over(grid, total, chunks_per_s=1)
    first = await grid.customer.read_log(1, wait_s=wait_s)
    assert (len(first.data), first.final, first.closed) == (4 * MOST_TIMES, False, False)
    rest = await grid.customer.read_log(1, first.next_offset, wait_s=wait_s)
    assert rest.final
    assert first.data + rest.data == b"".join(b"%03d\n" % number for number in range(total))
