"""`Grid` where other libraries deadlock: in a running loop, in threads, after a fork, at exit, at Ctrl-C."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deepgrid.client import AsyncGrid, Grid, InputError
from deepgrid.client.sync.event_loop_thread import event_loop_thread
from tests.cli.live import EXAMPLE
from tests.client.stage import Customer
from tests.client.support import SimulatedCluster

WITHIN_S = 120
GRIDS = 1000
OPEN = """
import os, sys, threading
from deepgrid import Grid
grid = Grid(sys.argv[1], sys.argv[2])
job_id = int(sys.argv[3])
"""


async def _submitted(customer: Customer) -> int:
    async with AsyncGrid(customer.key, customer.book) as grid:
        return (await grid.submit(EXAMPLE, credits=100)).id


def _program(text: str, customer: Customer, job_id: int = 0, *options: str) -> list[str]:
    return [sys.executable, *options, "-c", OPEN + text, str(customer.key), str(customer.book), str(job_id)]


def _run(text: str, customer: Customer, job_id: int = 0, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a program to its end. It may not hang."""
    program = _program(text, customer, job_id, *options)
    return subprocess.run(program, capture_output=True, text=True, timeout=WITHIN_S, check=False)


async def test_inside_a_running_loop(customer: Customer, cluster: SimulatedCluster) -> None:
    assert asyncio.get_running_loop().is_running()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Grid(customer.key, customer.book) as grid:
            job = grid.submit(EXAMPLE, credits=100).wait(timeout=60)
            assert [line.text for line in job.logs()] == ["one", "two"]


def test_in_ten_threads(customer: Customer, cluster: SimulatedCluster) -> None:
    with Grid(customer.key, customer.book) as grid, ThreadPoolExecutor(10) as threads:
        submitted = list(threads.map(lambda _: grid.submit(EXAMPLE, credits=100).id, range(10)))
        assert len(set(submitted)) == 10
        assert all(threads.map(lambda job_id: grid.job(job_id).wait(timeout=60).over, submitted))


def test_all_grids_share_one_thread(customer: Customer) -> None:
    grids = [Grid(customer.key, customer.book) for _ in range(GRIDS)]
    assert {grid._thread for grid in grids} == {event_loop_thread()}
    assert len([thread for thread in threading.enumerate() if thread.name == "deepgrid"]) <= 1


async def test_after_a_fork_it_is_refused_and_another_can_be_opened(customer: Customer) -> None:
    done = await asyncio.to_thread(_run, FORK, customer)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "This Grid was opened before a fork, and its connections belong to the parent process. "
        "Open another one in the child.",
        "child: 1000",
        "parent: 1000",
    ]


FORK = """
with grid:
    assert grid.wallet.credits == 1000
    child = os.fork()
    if child == 0:
        try:
            grid.clusters()
        except Exception as error:
            print(error)
        with Grid(sys.argv[1], sys.argv[2]) as own:
            print("child:", own.wallet.credits, flush=True)
        sys.exit()  # through the `with` of the parent's Grid, which closes nothing here
    assert os.waitpid(child, 0)[1] == 0
    print("parent:", grid.wallet.credits)
"""


LEFT = {
    "closed": "grid.close()",
    "unclosed": "job = grid.job(job_id)",
    "half-consumed log": "lines = grid.job(job_id).logs(follow=True);"
    " threading.Thread(target=lambda: next(lines), daemon=True).start()",
    "half-consumed list": "jobs = iter(grid.jobs()); next(jobs)",
    "waiting thread": "threading.Thread(target=grid.job(job_id).wait, daemon=True).start()",
    "closed at exit": "grid.clusters(); import atexit; atexit.register(grid.close)",
}


async def test_the_interpreter_ends_without_a_word(customer: Customer) -> None:
    arguments = (customer.key, customer.book, await _submitted(customer))
    programs = json.dumps({name: OPEN + text for name, text in LEFT.items()})
    argv = [sys.executable, "-c", EACH_IN_A_FORK, *map(str, arguments), programs]
    done = await asyncio.to_thread(subprocess.run, argv, capture_output=True, text=True, timeout=WITHIN_S, check=False)
    assert done.stdout.splitlines() == [f"{name}: 0" for name in LEFT], done.stderr
    assert done.stderr == ""


# One interpreter imports everything, and each program runs in a fork of it, to the end of the fork's interpreter.
EACH_IN_A_FORK = """
import json, os, sys
from importlib import import_module
from tests.cli.forker import PRELOADED
for name in PRELOADED:
    import_module(name)
for name, text in json.loads(sys.argv[4]).items():
    child = os.fork()
    if child == 0:
        exec(text, globals())
        sys.exit()
    print(f"{name}: {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}", flush=True)
"""


async def test_an_unclosed_grid_warns_at_exit_where_warnings_are_shown(customer: Customer) -> None:
    done = await asyncio.to_thread(_run, "grid.clusters()", customer, 0, "-W", "always::ResourceWarning")
    assert done.returncode == 0
    assert "ResourceWarning: The grid of 0x" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("waits", "note"),
    [
        ("grid.job(job_id).wait()", r"Job \d+ continues; wait for it again with `grid\.job\(\d+\)\.wait\(\)`"),
        ("list(grid.job(job_id).logs(follow=True))", r"Job \d+ continues;"),
    ],
)
async def test_ctrl_c_ends_the_wait_and_says_how_to_go_on(customer: Customer, waits: str, note: str) -> None:
    job_id = await _submitted(customer)
    text = INTERRUPTED.format(waits=waits)
    process = subprocess.Popen(
        _program(text, customer, job_id), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert await asyncio.to_thread(process.stdout.readline) == "waits\n"
    await asyncio.sleep(0.5)  # during the wait; an earlier signal ends the program too
    process.send_signal(signal.SIGINT)
    out, err = await asyncio.to_thread(process.communicate, timeout=WITHIN_S)
    assert process.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in err
    assert re.search(note, err.splitlines()[-1]), err
    assert out == "pending\n"  # the job and the Grid continue


INTERRUPTED = """
grid.job(job_id)
print("waits", flush=True)
try:
    {waits}
finally:
    print(grid.job(job_id).status.words)
"""


def test_a_job_of_another_process_is_refused(customer: Customer, tmp_path: Path) -> None:
    with Grid(customer.key, customer.book) as grid:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                grid.clusters()
            except InputError as error:
                os.write(writing, error.next_step.encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert os.read(reading, 100) == b"Open another one in the child."
