"""Sessions in a job of a real Slurm, over real services behind nginx."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.client.tunnel.job_tunnel import JobStream, SessionLost
from deepgrid.client.tunnel.live_job import open_port as open_page
from deepgrid.errors import InputError
from deepgrid.services.tunnels.tunnel_frames import FIRST_WINDOW, Kind, StreamRequest
from tests.provider.tunnels.tunnel_support import WITHIN_S, LiveGrid, live_grid, opened, until_true
from tests.slurm.support import SMALL, Box

# A page server that counts nothing and keeps nothing: it answers each line with the line, until its input ends.
ECHO_SERVER = """python3 -c '
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
open("port", "w").write(str(server.getsockname()[1]))
def serve(line):
    while data := line.recv(65536):
        line.sendall(data)
    line.close()
while True:
    threading.Thread(target=serve, args=[server.accept()[0]], daemon=True).start()
'"""

# It chooses a port at once, and listens there when a file tells it to.
LATE_SERVER = """python3 -c '
import os, socket, time
server = socket.socket()
server.bind(("127.0.0.1", 0))
open("port", "w").write(str(server.getsockname()[1]))
while not os.path.exists("go"):
    time.sleep(0.1)
server.listen()
while True:
    line = server.accept()[0]
    line.sendall(b"hello")
    line.close()
'"""


@pytest.fixture
async def grid(box: Box, tmp_path: Path) -> AsyncIterator[LiveGrid]:
    async with live_grid(box, tmp_path) as grid:
        yield grid


async def test_a_command_runs_in_the_allocation_as_the_jobs_account(
    grid: LiveGrid, caplog: pytest.LogCaptureFixture
) -> None:
    """Its output, errors and status come back. The supervisor logs who and how many bytes, and no contents."""
    caplog.set_level(logging.INFO, "deepgrid.provider.tunnels")
    job = await grid.running_job()
    done = await grid.at(job).exec("id -un; echo $SLURM_JOB_ID; cat; echo no >&2; exit 7", input="typed")
    account, slurm_id, typed = done.text.split("\n")
    assert (account, typed) == (grid.box.settings.job_account, "typed")
    assert int(slurm_id) == grid.monitor.observe(grid.keys[job.id]).slurm_id
    assert (done.status, done.stderr) == (7, b"no\n")
    await until_true(lambda: "session ended" in caplog.text, "the end is not logged")
    ended = next(line for line in caplog.messages if "session ended" in line)
    assert f"job {job.id}: session ended: customer={job.customer} by=wallet" in ended
    assert "to_job=5 " in ended
    assert "typed" not in caplog.text


async def test_a_program_that_does_not_exist_is_named(grid: LiveGrid) -> None:
    job = grid.at(await grid.running_job())
    with pytest.raises(InputError, match="No such file"):
        await job.exec(["no-such-program"])
    assert (await job.exec(["sh", "-c", "kill -9 $$"])).status == 137


async def test_much_data_passes_both_ways_and_waits_for_its_reader(grid: LiveGrid) -> None:
    """Eight windows pass through `cat`. While no program reads, no more than a window is in flight."""
    job, sent = grid.at(await grid.running_job()), bytes(range(256)) * 4096
    assert (await job.exec(["cat"], input=sent)).stdout == sent
    async with await opened(job) as tunnel:
        stream = await tunnel.stream(StreamRequest(kind="exec", command=("cat", "/dev/zero")))
        async with asyncio.timeout(WITHIN_S):
            while stream._arrived < FIRST_WINDOW:
                await asyncio.sleep(0.05)
        (served,) = grid.host.tunnels
        assert served.traffic.from_job == FIRST_WINDOW
        assert not served._queue


async def test_programs_start_on_all_nodes_of_the_job_from_a_shell(grid: LiveGrid) -> None:
    """The shell is on the first of two nodes. In it, Slurm's variables name the job, and not the shell's own step."""
    both = replace(SMALL, ntasks=2, cpus_per_task=8)
    async with await opened(grid.at(await grid.running_job(asked=both))) as tunnel:
        stream = await tunnel.stream(StreamRequest(kind="shell", rows=24, columns=200, term="xterm"))
        await stream.write(
            b"srun sh -c 'echo on $SLURMD_NODENAME, $SLURM_NTASKS tasks'; echo here: $SLURMD_NODENAME.\n"
        )
        shown = await _shown(stream, "here: unit-n1.")
        found = {line for line in shown.splitlines() if line.startswith("on ")}
        assert found == {"on unit-n1, 2 tasks", "on unit-n2, 2 tasks"}
        await stream.write(b"env | grep -c '^SLURM_STEP'; echo $SLURM_JOB_NODELIST over\n")
        assert "0\r\nunit-n[1-2] over" in await _shown(stream, "] over")


async def test_a_shell_has_a_terminal_of_the_right_size(grid: LiveGrid) -> None:
    async with await opened(grid.at(await grid.running_job())) as tunnel:
        stream = await tunnel.stream(StreamRequest(kind="shell", rows=24, columns=80, term="xterm"))
        await stream.write(b"stty size; echo $TERM\n")
        assert "24 80\r\nxterm" in await _shown(stream, "24 80\r\nxterm")
        await stream.resize(50, 132)
        await stream.write(b"stty size; exit 4\n")
        assert "50 132" in await _shown(stream, "")
        assert stream.end.status == 4


async def test_ports_of_the_node_are_reached_at_once_by_several_connections(grid: LiveGrid) -> None:
    job = await grid.running_job(ECHO_SERVER)
    live = grid.at(job)
    port = int((await live.exec("until [ -s port ]; do sleep 0.1; done; cat port")).text)
    async with await live.forward(port) as forwarded:
        lines = [await asyncio.open_connection("127.0.0.1", forwarded.port) for _ in range(5)]
        for number, (_, writer) in enumerate(lines):
            writer.write(f"line {number}".encode() * 20_000)
            writer.write_eof()
        for number, (reader, writer) in enumerate(lines):
            assert await reader.read(-1) == f"line {number}".encode() * 20_000
            writer.close()


async def test_an_end_of_input_that_comes_before_the_connection_is_kept(grid: LiveGrid) -> None:
    live = grid.at(await grid.running_job(ECHO_SERVER))
    port = int((await live.exec("until [ -s port ]; do sleep 0.1; done; cat port")).text)
    async with await live._tunnel() as tunnel:
        stream = await tunnel.stream(StreamRequest(kind="forward", port=port))
        await stream.end_input()
        async with asyncio.timeout(WITHIN_S):
            while (piece := await stream.read()) is not None:
                assert piece[0] is Kind.EOF


async def test_a_port_without_a_server_says_so(grid: LiveGrid) -> None:
    said: list[str] = []
    async with await grid.at(await grid.running_job()).forward(9, say=said.append) as forwarded:
        reader, writer = await asyncio.open_connection("127.0.0.1", forwarded.port)
        assert await reader.read(-1) == b""
        writer.close()
        await until_true(lambda: bool(said), "nothing was said")
    assert "nothing answers at that port" in said[0]


async def test_a_page_is_opened_once_its_server_listens(grid: LiveGrid) -> None:
    """The port of this machine may be taken, for example by the job's own server if both run on one machine."""
    said: list[str] = []
    live = grid.at(await grid.running_job(LATE_SERVER))
    port = int((await live.exec("until [ -s port ]; do sleep 0.1; done; cat port")).text)
    opening = asyncio.create_task(open_page(live, port, 0, said.append))
    await until_true(lambda: bool(said), "the wait was not told")
    assert said == [f"Nothing listens at port {port} of job {live._job.id} yet. Waiting for it; Ctrl-C ends this"]
    assert not opening.done()
    await live.exec("touch go")
    async with asyncio.timeout(WITHIN_S), await opening as forwarded:
        assert forwarded.port != port, "the job's server is on this machine, too"
        reader, writer = await asyncio.open_connection("127.0.0.1", forwarded.port)
        assert await reader.read(-1) == b"hello"
        writer.close()


async def test_sessions_end_with_their_job(grid: LiveGrid) -> None:
    job = await grid.running_job()
    async with await opened(grid.at(job)) as tunnel:
        stream = await tunnel.stream(StreamRequest(kind="exec", command=("sleep", "600")))
        await grid.cluster.cancel(grid.keys[job.id])
        with pytest.raises(SessionLost, match="the job is over"):
            async with asyncio.timeout(WITHIN_S):
                await stream.read()


async def _shown(stream: JobStream, wanted: str) -> str:
    """Return what the terminal shows until the wanted text, or until the end."""
    shown = ""
    async with asyncio.timeout(WITHIN_S):
        while not wanted or wanted not in shown:
            piece = await stream.read()
            if piece is None:
                break
            assert piece[0] is Kind.DATA
            shown += piece[1].decode()
    return shown
