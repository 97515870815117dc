"""A slow reader of a command's output stops neither the session nor its keepalives."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from deepgrid.client.tunnel.terminal_line import without_blocking

DATA = os.urandom(300_000)


async def test_the_loop_goes_on_while_nobody_reads() -> None:
    source, sink = os.pipe()
    writing = asyncio.create_task(without_blocking(sink, DATA, lambda piece: os.write(sink, piece)))
    await asyncio.wait({writing}, timeout=0.5)
    assert not writing.done(), "the pipe is full"
    found = bytearray()
    while len(found) < len(DATA):
        found += await asyncio.to_thread(os.read, source, 65536)
    await writing
    assert found == DATA
    os.close(source)
    os.close(sink)


async def test_a_reader_that_left_ends_it() -> None:
    source, sink = os.pipe()
    os.close(source)
    failed = await asyncio.gather(
        without_blocking(sink, DATA, lambda piece: os.write(sink, piece)), return_exceptions=True
    )
    assert isinstance(failed[0], BrokenPipeError)
    os.close(sink)


async def test_a_file_has_room_always(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        await without_blocking(file.fileno(), DATA, file.write)
    assert (tmp_path / "out").read_bytes() == DATA
