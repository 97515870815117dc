"""S5 of the interfaces: a job's output is read completely and once, across restarts, outages and new claims."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.client import AsyncGrid, AsyncJob, InputError, JobStatus
from deepgrid.client.engine.output import JobOutput, Piece
from deepgrid.errors import GridError, ServiceError
from deepgrid.services.client import ServicesClient
from tests.appending import push_log
from tests.chain.grid import Grid, approve_waiting, running_grid
from tests.cli.live import CREDIT, EXAMPLE, HARDWARE, LABELS, PRICES, Live, Party, Wire, party, services_of
from tests.client.stage import Customer, Stage

OUTPUT_BYTES = 10 * 2**20
RESTARTS = 5
WITHIN_S = 120


def text_of(lines: int) -> bytes:
    """Numbered lines of 64 bytes."""
    return b"".join(b"line %08d %s\n" % (number, b"." * 49) for number in range(lines))


async def push(services: ServicesClient, job_id: int, data: bytes, *, start: int = 0, final: bool = False) -> int:
    """Push output as a provider does: retry from the expected offset until the services have it."""
    offset = start
    while True:
        try:
            offset = await push_log(services, job_id, offset, data[offset:], final=final)
        except GridError as error:
            if not error.transient:
                raise
            await asyncio.sleep(0.2)
            continue
        if offset >= len(data):
            return offset


class Restarted:
    """The services of a grid behind one address. After each restart it leads to another process."""

    def __init__(self, grid: Grid, folder: Path, wire: Wire) -> None:
        self._grid, self._folder, self._wire = grid, folder, wire
        self._running = ExitStack()

    async def start(self) -> None:
        url = await asyncio.to_thread(self._running.enter_context, services_of(self._grid.book, self._folder))
        self._wire.lead_to(url)

    async def stop(self) -> None:
        await asyncio.to_thread(self._running.close)

    async def restart_all(self) -> None:
        """Stop services and node at the same time. The node starts first."""
        await self.stop()
        await asyncio.to_thread(self._grid.anvil.restart)
        await self.start()


@dataclass(frozen=True)
class Follower:
    """The lines that two readers of one job have received."""

    output: bytearray
    lines: list[str]
    tasks: tuple[asyncio.Task[None], ...]

    @classmethod
    def of(cls, job: AsyncJob) -> Follower:
        output, lines = bytearray(), list[str]()

        async def read_output() -> None:
            async for piece in job.output(follow=True):
                output.extend(piece)

        async def read_lines() -> None:
            async for line in job.logs(follow=True):
                lines.append(line.text)

        return cls(output, lines, (asyncio.create_task(read_output()), asyncio.create_task(read_lines())))

    async def end(self) -> None:
        async with asyncio.timeout(WITHIN_S):
            await asyncio.gather(*self.tasks)


@asynccontextmanager
async def carried(grid: Grid, book: Path, chain: Chain) -> AsyncIterator[tuple[AsyncGrid, AsyncJob, Party]]:
    """Yield a running job of a new customer, and its provider."""
    operator = party(chain, Wallet.load(grid.operator_key))
    provider = party(chain, grid.new_key("provider"))
    customer = grid.new_key("customer")
    try:
        await operator.writer.mint(customer.address, 1000 * CREDIT)
        await provider.writer.register(HARDWARE, PRICES, LABELS)
        await approve_waiting(operator.writer, provider.address)
        async with AsyncGrid(grid.keys / "customer", book) as opened:
            job = await opened.submit(EXAMPLE, credits=100)
            await Stage(operator, provider).run(job)
            yield opened, job, provider
    finally:
        await operator.close()
        await provider.close()


@pytest.fixture
def durable(tmp_path: Path) -> Iterator[Grid]:
    with running_grid(tmp_path / "chain", keep_state=True) as grid:
        yield grid


@pytest.mark.deep
@pytest.mark.timeout(900)  # the services start six times
async def test_ten_megabytes_are_read_whole_while_services_and_node_restart_five_times(
    durable: Grid, tmp_path: Path
) -> None:
    data = text_of(OUTPUT_BYTES // 64)
    async with Wire("http://127.0.0.1:1") as wire:
        services = Restarted(durable, tmp_path, wire)
        await services.start()
        book = durable.book.model_copy(update={"definitions_url": wire.url, "logs_url": wire.url})
        try:
            async with (
                await Chain.connect(book) as chain,
                carried(durable, book.save(tmp_path / "b.json"), chain) as on,
            ):
                _, job, provider = on
                follower = Follower.of(job)
                sent = 0
                for part in range(1, RESTARTS + 1):
                    pushing = asyncio.create_task(
                        push(provider.services, job.id, data[: len(data) * part // (RESTARTS + 1)], start=sent)
                    )
                    await services.restart_all()
                    sent = await pushing
                await push(provider.services, job.id, data, start=sent, final=True)
                await follower.end()
        finally:
            await services.stop()
    assert len(follower.output) == len(data)
    assert hashlib.sha256(follower.output).digest() == hashlib.sha256(data).digest()
    assert follower.lines == data.decode().splitlines()


async def test_a_cut_line_delays_output_and_repeats_nothing(
    live: Live, customer: Customer, stage: Stage, tmp_path: Path
) -> None:
    data = text_of(30_000)
    async with Wire(live.address_book().definitions_url) as wire:
        book = live.address_book().model_copy(update={"definitions_url": wire.url})
        async with AsyncGrid(customer.key, book.save(tmp_path / "wired.json")) as grid:
            job = await grid.submit(EXAMPLE, credits=100)
            await stage.run(job)
            said: list[str] = []
            follower = Follower.of(job)
            third = asyncio.create_task(collect(job, said.append))
            for part in (1, 2, 3):
                await push(stage.provider.services, job.id, data[: len(data) * part // 3], final=part == 3)
                if part < 3:
                    await wire.cut()
                    await wire.mend()
            await follower.end()
            assert bytes(follower.output) == data
            assert follower.lines == await third == data.decode().splitlines()


async def collect(job: AsyncJob, say: Callable[[str], None]) -> list[str]:
    return [line.text async for line in job.logs(follow=True, say=say)]


async def next_second() -> None:
    """Wait until the clock shows another second: claims differ by their times in seconds."""
    begun = int(time.time())
    while int(time.time()) == begun:
        await asyncio.sleep(0.05)


async def test_output_begins_anew_with_the_next_claim_and_says_so(grid: AsyncGrid, stage: Stage) -> None:
    job = await grid.submit(EXAMPLE, credits=100)
    writer, services = stage.provider.writer, stage.provider.services
    await stage.operator.writer.meta_schedule(job.id, stage.provider.address)
    await writer.claim_next()
    await push(services, job.id, b"void\nthis line is not complete")
    said: list[str] = []
    lines = job.logs(follow=True, say=said.append)
    first = await anext(lines)
    await next_second()
    await writer.refuse_job(job.id)
    await stage.operator.writer.meta_schedule(job.id, stage.provider.address)
    await writer.claim_next()
    await push(services, job.id, b"new\nwhole\n", final=True)
    async with asyncio.timeout(60):
        others = [line async for line in lines]
    assert [(line.claim, line.text) for line in (first, *others)] == [(1, "void"), (2, "new"), (2, "whole")]
    assert said == ["The job starts again on another cluster; its previous output is void."]


@pytest.mark.parametrize("tail", [0, 1, 3, 5000, 30_000, 90_000])
async def test_the_last_lines_are_read_from_the_end_and_then_followed(grid: AsyncGrid, stage: Stage, tail: int) -> None:
    data = text_of(40_000)
    lines = data.decode().splitlines()
    job = await grid.submit(EXAMPLE, credits=100)
    await stage.run(job)
    await push(stage.provider.services, job.id, data + b"not ")
    assert [line.text async for line in job.logs(tail=tail)] == ([*lines, "not "][-tail:] if tail else [])
    following = asyncio.create_task(texts(job, tail))
    await push(stage.provider.services, job.id, data + b"not yet\nlast\n", start=len(data), final=True)
    async with asyncio.timeout(60):
        found = await following
    whole = [*lines, "not yet", "last"]
    assert found == whole[len(whole) - len(found) :]
    assert len(found) >= min(tail, len(whole))


async def test_the_last_lines_come_with_all_their_parts(grid: AsyncGrid, stage: Stage) -> None:
    """A line of 200,000 letters has four parts, which are one line. `tail` never begins in its middle."""
    job = await grid.submit(EXAMPLE, credits=100)
    await stage.run(job)
    await push(stage.provider.services, job.id, b"first\n" + b"x" * 200_000 + b"\nlast\n", final=True)
    found = [line async for line in job.logs(tail=2)]
    assert "".join(line.text for line in found) == "x" * 200_000 + "last"
    assert [line.continues for line in found] == [True, True, True, False, False]


class Unread(JobOutput):
    """The output of a job whose log cannot be read."""

    async def pieces(self, start: int = 0, claimed_at: int = 0) -> AsyncIterator[Piece]:
        raise ServiceError("The services are down.")
        yield


async def test_a_log_that_cannot_be_read_leaves_an_earlier_copy(tmp_path: Path) -> None:
    (tmp_path / "copy").write_text("kept")
    with pytest.raises(ServiceError):
        await Unread(cast(Any, None), 1).save(tmp_path / "copy")
    assert (tmp_path / "copy").read_text() == "kept"


async def texts(job: AsyncJob, tail: int) -> list[str]:
    return [line.text async for line in job.logs(follow=True, tail=tail)]


async def test_a_job_without_output_has_no_last_lines(grid: AsyncGrid, stage: Stage) -> None:
    job = await grid.submit(EXAMPLE, credits=100)
    assert [line async for line in job.logs(tail=10)] == []
    with pytest.raises(InputError, match="-1 lines cannot be read"):
        await anext(job.logs(tail=-1))
    await job.cancel()
    assert job.status is JobStatus.CANCELLED


async def test_a_log_is_saved_byte_by_byte_and_its_lines_know_when_they_were_written(
    grid: AsyncGrid, stage: Stage, tmp_path: Path
) -> None:
    job = await grid.submit(EXAMPLE, credits=100)
    await stage.run(job)
    before = datetime.now(UTC) - timedelta(seconds=2)
    odd = b"one\r\n\xff\x00\a\x1b[2Jtwo\n" + b"x" * 70_000 + b"\nend"
    offset = await push_log(stage.provider.services, job.id, 0, odd[:9])
    await push_log(stage.provider.services, job.id, offset, odd[9:], final=True)
    status = await job.download_log(tmp_path / "log")
    assert ((tmp_path / "log").read_bytes(), status.size, status.is_whole) == (odd, len(odd), True)
    lines = [line async for line in job.logs()]
    assert [(len(line.text), line.continues) for line in lines] == [
        (3, False), (4, False), (65_536, True), (70_000 - 65_536, False), (3, False),
    ]  # fmt: skip
    assert all(line.written and before <= line.written <= line.arrived for line in lines)
    with pytest.raises(InputError, match="cannot be written: Is a directory"):
        await job.download_log(tmp_path)
