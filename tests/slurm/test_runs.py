"""A start that the guard refused is no run; a payload that ends like the guard is one, whatever it does to the mark."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.lifecycle.job import JobKey
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.commands import Row, wait_status
from deepgrid.slurm.look import Look
from deepgrid.slurm.monitor import SlurmMonitor
from deepgrid.slurm.sightings import REFUSED_START
from deepgrid.slurm.starts import (
    CLOCKS_AGREE_WITHIN_S,
    GUARD_STATUS,
    REFUSAL_TAKES_S,
    START_TAKES_S,
    Marks,
    is_refused_start,
)
from tests.slurm.support import SMALL, WAIT_S, Box, bash, ended, new_key
from tests.slurm.test_look import KEY

START = 1000
BY_GUARD = Row(42, "999", KEY.name, KEY.comment, "FAILED", START, START, wait_status(GUARD_STATUS, 0))
EARLIER = START - CLOCKS_AGREE_WITHIN_S - 1

CASES = {
    "an earlier start left the mark": (BY_GUARD, Marks(EARLIER), True),
    "this start made the mark": (BY_GUARD, Marks(START), False),
    "this start made the mark, and a file server is a little behind": (BY_GUARD, Marks(START - 1), False),
    "the payload touched the mark later": (BY_GUARD, Marks(START + 50), False),
    "the payload took the mark away": (BY_GUARD, Marks(), False),
    "it ran for long, and a file server is far behind": (
        replace(BY_GUARD, ended_at=START + REFUSAL_TAKES_S + 1), Marks(EARLIER), False,
    ),
    "the claim was cancelled before": (BY_GUARD, Marks(None, START - 5), True),
    "the claim was cancelled in the second of the start": (BY_GUARD, Marks(START, START), True),
    "the claim was cancelled while it ran": (BY_GUARD, Marks(START, START + 1), False),
    "the claim was cancelled while the script was on its way": (BY_GUARD, Marks(None, START + 1), True),
    "the claim was cancelled later, and the payload had taken the mark away": (
        BY_GUARD, Marks(None, START + START_TAKES_S + 1), False,
    ),
    "it ended with another status": (replace(BY_GUARD, exit_status=wait_status(3, 0)), Marks(EARLIER, EARLIER), False),
    "it never started": (replace(BY_GUARD, started_at=None), Marks(EARLIER, EARLIER), False),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_which_records_are_of_a_refused_start(case: str) -> None:
    row, marks, refused = CASES[case]
    assert is_refused_start(row, marks) is refused


def look(marks: Marks, *records: Row) -> Look:
    return Look((), records, {KEY.comment: "999"}, {KEY.comment: 42}, marks={KEY.comment: marks})


def test_a_job_that_ran_twice_ended_when_it_ended_first() -> None:
    """A controller that was killed before it saved that the job had ended runs it again; the guard refuses."""
    ran = replace(BY_GUARD, state="COMPLETED", exit_status=0, started_at=EARLIER - 90, ended_at=EARLIER)
    seen = look(Marks(EARLIER - 90), BY_GUARD, ran)
    end = seen.ended(KEY)
    assert end is not None
    assert (end.state, end.ended_at) == ("COMPLETED", EARLIER)


def test_a_refused_start_alone_is_no_end_for_spool_and_accounting() -> None:
    seen = look(Marks(EARLIER), BY_GUARD)
    assert seen.ended(KEY) is None
    assert seen.refused_start(KEY, [])
    assert look(Marks(EARLIER)).records_of(KEY, [BY_GUARD]).end is None
    assert look(Marks(EARLIER)).refused_start(KEY, [BY_GUARD])
    assert not look(Marks(START)).refused_start(KEY, [BY_GUARD])


async def recorded(box: Box, key: JobKey) -> None:
    """Wait until the completion hook wrote about the claim."""
    spool = box.folder(key).parent.parent / "spool"
    deadline = time.monotonic() + WAIT_S
    while not [file for file in spool.glob("[0-9]*") if key.comment in file.read_text()]:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)


async def is_past(mark: Path) -> None:
    """Wait until a job that starts now counts as started after the mark."""
    while time.time() < mark.stat().st_ctime + CLOCKS_AGREE_WITHIN_S + 1:
        await asyncio.sleep(0.2)


async def test_a_start_that_the_guard_refuses_is_no_run_and_its_payload_does_not_run(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, held: Callable[[], None]
) -> None:
    """A tombstone whose scancel was lost; a job that a restarted controller runs a second time."""
    marks = {new_key(): "tombstone", new_key(): "run/started"}
    for key, mark in marks.items():
        await cluster.submit(key, bash("echo ran"), SMALL)
        (box.folder(key) / mark).mkdir()
    for key, mark in marks.items():
        await is_past(box.folder(key) / mark)
    held()
    for key, mark in marks.items():
        await recorded(box, key)
        monitor.watch(key)
        # Accounting may still call it running; what was stopped by a tombstone, the supervisor stopped.
        expected = replace(REFUSED_START, stopped=mark == "tombstone")
        async with asyncio.timeout(WAIT_S):
            while (job := monitor.observe(key)) != expected:
                await monitor.changed(key, job, 5)
        output = (await cluster.read_output({key: 0}))[key]
        assert b"deepgrid: " in output
        assert b"ran" not in output.splitlines()


FORGERIES = {
    "does nothing": "true",
    "touches the mark": "touch -d @1 started",
    "makes the mark anew": "rmdir started && mkdir started",
    "puts a folder of before in its place": 'rmdir started && mv "$OLD" started && touch -d @1 started',
    "puts a link to one in its place": 'rmdir started && ln -s "$OLD" started && touch -h -d @1 started',
}


async def test_a_payload_that_ends_like_the_guard_is_billed_whatever_it_does_to_the_mark(
    box: Box, cluster: Cluster, monitor: SlurmMonitor
) -> None:
    """Or computing would be free, and the provider blamed for it. The time of a mark cannot be set back."""
    keys = {new_key(): trick for trick in FORGERIES}
    olds = {key: box.folder(key) / "run" / "old" for key in keys}
    for old in olds.values():
        old.mkdir(parents=True)
        if box.settings.job_account:
            shutil.chown(old, box.settings.job_account)
    await is_past(old)
    for key, trick in keys.items():
        body = f"OLD={olds[key]}; ({FORGERIES[trick]}) && echo done; exit {GUARD_STATUS}"
        await cluster.submit(key, bash(body), SMALL)
    for key, trick in keys.items():
        end = await ended(monitor, key)
        assert (end.state, end.exit_status) == ("FAILED", GUARD_STATUS << 8), trick
        assert (await cluster.read_output({key: 0}))[key] == b"done\n", trick
