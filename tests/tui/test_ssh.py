"""The app over SSH, as on a login node: a real sshd, a terminal of 80x24, only keys. The specification's limits are for
an idle machine: first screen 2 s, keys 0.2 s. Other programs share this machine. So the first screen is measured in
processor time, which they do not change, with a margin of 1.5 for slower processors. A key is measured as the median of
20 keys, without the app's waits for a processor. Its margin is 5, because both ends of ssh, the services and this test
wait too. Bytes are counted exactly.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deepgrid.client import AsyncGrid, AsyncJob, JobStatus
from deepgrid.tui.templates import templates
from tests.appending import push_log
from tests.cli.live import EXAMPLE
from tests.client.stage import Customer, Stage
from tests.tui.login_node import PROMPT, LoginNode, Process, login_node
from tests.tui.terminal import Terminal

pytestmark = pytest.mark.long

FIRST_SCREEN_S, FIRST_SCREEN_BYTES, IDLE_BYTES_PER_S, KEY_S = 2.0, 50_000, 200, 0.2
SLOWER_PROCESSOR, SHARED_MACHINE = 5, 5
LINES_PER_S, KEYS, IDLE_S = 5000, 20, 20.0
CTRL_T = "\x14"


@pytest.fixture
def node(customer: Customer, tmp_path: Path) -> Iterator[LoginNode]:
    variables = {
        "DEEPGRID_BOOK": str(customer.book), "DPS_KEY_FILE": str(customer.key), "LANG": "C.UTF-8", "TZ": "UTC"
    }  # fmt: skip
    with login_node(tmp_path, variables, "DPS_KEY_FILE") as running:
        yield running


@pytest.fixture
def terminal(node: LoginNode) -> Iterator[Terminal]:
    """A terminal with a shell on the login node."""
    there = {"PATH": os.environ["PATH"], "HOME": str(node.home), "TERM": "xterm-256color"}
    with Terminal(node.ssh, there, cwd=str(node.home)) as opened:
        opened.shows(PROMPT)
        yield opened


async def press(terminal: Terminal, keys: str, *words: str) -> None:
    """Type, and wait until the terminal shows the words."""

    def type_and_look() -> None:
        terminal.type(keys)
        terminal.shows(*words)

    await asyncio.to_thread(type_and_look)


def the_app(node: LoginNode) -> Process:
    (process,) = node.processes()
    return process


@pytest.fixture
async def running(grid: AsyncGrid, stage: Stage) -> AsyncJob:
    job = await grid.submit(EXAMPLE, credits=100, name="talks")
    await stage.run(job)
    return job


# -- what a user does -----------------------------------------------------------------------------


async def test_a_job_is_submitted_followed_searched_topped_up_and_cancelled(
    terminal: Terminal, node: LoginNode, grid: AsyncGrid, stage: Stage
) -> None:
    await press(terminal, "dps\r", "You have no jobs yet")
    await submit(terminal)
    (job,) = [job async for job in grid.jobs()]
    assert (job.name, job.locked) == ("hello-world", 100)
    await stage.run(job)
    await press(terminal, "", "running")
    await follow(terminal, stage, job)
    await press(terminal, "q", "enter log")
    await press(terminal, "t", "Top up job")
    await press(terminal, "20\r", "[y/N]")
    await press(terminal, "y", "120 credits locked now")
    await press(terminal, "c", "[y/N]")
    await press(terminal, "y", "to be cancelled")
    await job.refresh()
    assert (job.locked, job.on_chain.has_cancel_request) == (120, True)
    await stage.provider.writer.settle(job.id, JobStatus.CANCELLED, 1)
    await press(terminal, "", "cancelled")
    await press(terminal, "q", PROMPT)
    terminal.type("exit\r")
    assert await asyncio.to_thread(terminal.ended) == 0
    assert not node.processes()


async def submit(terminal: Terminal) -> None:
    """Submit a template, with a form."""
    names = [name for name, _ in templates()]
    await press(terminal, "s", "Name a workflow file")
    await press(terminal, CTRL_T, "hello-world", "The smallest useful job")
    await press(terminal, "j" * names.index("hello-world") + "\r", "Wrote hello-world.yaml", "alpha")
    for keys, field in (
        ("", "credits to lock"),
        ("100", "name of the job"),
        ("", "60"),
        ("", "conditions on clusters"),
    ):
        if keys:
            await press(terminal, keys, keys)
        await press(terminal, "\r", field)
    await asyncio.to_thread(agree, terminal)
    await press(terminal, "y", "is submitted")


def agree(terminal: Terminal) -> None:
    """Press enter until the question is there. On a slow machine, the quote may be too old first."""
    for _ in range(5):
        before = len(terminal.text)

        def answered(start: int = before) -> bool:
            return any(word in terminal.text[start:] for word in ("[y/N]", "Press enter again"))

        terminal.type("\r")
        terminal.until(answered, "no question")
        if "[y/N]" in terminal.text[before:]:
            return
    raise AssertionError("the quote is always too old")


async def follow(terminal: Terminal, stage: Stage, job: AsyncJob) -> None:
    """Follow the log of a job, resize the terminal meanwhile, and search."""
    services = stage.provider.services
    first = b"".join(b"line %d%s\n" % (number, b" has a needle" * (number in (10, 50))) for number in range(100))
    await press(terminal, "\r", "No output yet")
    await push_log(services, job.id, 0, first)
    await press(terminal, "", "line 99", "100 lines, following")
    for columns, rows in ((100, 30), (80, 24)):
        before = len(terminal.bytes)
        terminal.resize(columns, rows)
        last_row = b"\x1b[%d;1H" % rows  # the cursor moves there, to draw the line of keys
        await asyncio.to_thread(terminal.until, lambda at=before, row=last_row: row in terminal.bytes[at:], "no resize")
    await push_log(services, job.id, len(first), b"one more\n")
    await press(terminal, "", "one more", "101 lines, following")
    await press(terminal, "/", "search for")
    await press(terminal, "needle\r", "line 10 has a needle", "paused")
    await press(terminal, "n", "line 50 has a needle")
    await press(terminal, "/", "search for")
    await press(terminal, "absent\r", "No line contains 'absent'")


async def test_a_hang_up_leaves_no_process(
    terminal: Terminal, node: LoginNode, running: AsyncJob, stage: Stage
) -> None:
    await press(terminal, "dps\r", "talks", "running")
    await press(terminal, "\r", "No output yet")
    await push_log(stage.provider.services, running.id, 0, b"hello\n")
    await press(terminal, "", "hello")
    assert the_app(node)
    terminal.process.kill()  # the client of ssh
    await asyncio.to_thread(node.until_none_is_left)


# -- limits --------------------------------------------------------------------------------------


async def test_the_first_screen_and_an_idle_one_suit_slow_lines(
    terminal: Terminal, node: LoginNode, running: AsyncJob
) -> None:
    """The first screen takes at most 2 s and 50 kB. Then the app sends less than 200 bytes per second."""
    before = len(terminal.bytes)
    await press(terminal, "dps\r", "? keys")
    first_s = the_app(node).cpu_s
    await press(terminal, "", "talks", "running")
    table_s = the_app(node).cpu_s
    figures = f"first screen {first_s:.2f} s, table {table_s:.2f} s, {len(terminal.bytes) - before} bytes"
    assert first_s <= FIRST_SCREEN_S * SLOWER_PROCESSOR, figures
    assert len(terminal.bytes) - before <= FIRST_SCREEN_BYTES, figures
    begun, before = time.monotonic(), len(terminal.bytes)
    end = begun + IDLE_S
    await asyncio.to_thread(terminal.until, lambda: time.monotonic() > end, "unreachable")
    rate = (len(terminal.bytes) - before) / (time.monotonic() - begun)
    assert rate < IDLE_BYTES_PER_S, f"{rate:.0f} bytes per second"
    print(figures, f"idle {rate:.0f} bytes per second")


async def test_a_log_of_5000_lines_per_second_keeps_keys_answering(
    terminal: Terminal, node: LoginNode, running: AsyncJob, stage: Stage
) -> None:
    """The keys `?` and `q` open and close a screen above the log within 0.2 s."""
    await press(terminal, "dps\r", "talks", "running")
    await press(terminal, "\r", "No output yet")
    enough = asyncio.Event()
    talk = asyncio.create_task(talks(stage, running, enough))
    await press(terminal, "", "lines, following")
    process = the_app(node)
    answers = await asyncio.to_thread(lambda: [answer_s(terminal, process) for _ in range(KEYS)])
    enough.set()
    count = await talk
    await press(terminal, "", f"{count} lines, complete")
    median = statistics.median(answers)
    print(f"keys {median:.3f} s, at most {max(answers):.3f} s, {count} lines")
    assert median <= KEY_S * SHARED_MACHINE, answers


async def talks(stage: Stage, job: AsyncJob, enough: asyncio.Event) -> int:
    """Push 5,000 lines per second until there are enough. Returns their number."""
    count = offset = 0
    begun = time.monotonic()
    while not enough.is_set():
        output = b"".join(b"step %d of a job that talks much\n" % (count + number) for number in range(LINES_PER_S))
        await push_log(stage.provider.services, job.id, offset, output)
        count, offset = count + LINES_PER_S, offset + len(output)
        await asyncio.sleep(max(0.0, begun + count / LINES_PER_S - time.monotonic()))
    await push_log(stage.provider.services, job.id, offset, b"", final=True)
    return count


def answer_s(terminal: Terminal, process: Process) -> float:
    """Return the seconds until the key `?` is answered, without the app's waits for a processor."""
    waited, begun = process.waited_s, time.monotonic()
    terminal.type("?")
    terminal.shows("Keys")
    took = time.monotonic() - begun - (process.waited_s - waited)
    terminal.type("q")
    terminal.shows("lines, following")
    return max(0.0, took)
