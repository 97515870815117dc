"""A start that the guard refused is no run. A payload that ends with the guard's status is one."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.observe.commands import Row
from deepgrid.slurm.observe.exit_codes import wait_status
from deepgrid.slurm.observe.run_records import (
    CLOCK_SKEW_S,
    GUARD_DELAY_S,
    GUARD_STATUS,
    LONGEST_REFUSAL_S,
    Marks,
    is_refused_start,
    seconds_in,
)
from deepgrid.slurm.observe.snapshot import Snapshot
from deepgrid.slurm.observe.verdict import REFUSED_START
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from tests.slurm.rows import KEY, RECORDED
from tests.slurm.support import SMALL, WAIT_S, Box, bash, ended, new_key

START = 1000
BY_GUARD = replace(RECORDED, state="FAILED", started_at=START, ended_at=START, exit_status=wait_status(GUARD_STATUS, 0))
EARLIER = START - CLOCK_SKEW_S - 1
RAN_BEFORE = replace(RECORDED, started_at=EARLIER - 90, ended_at=EARLIER)

TOMBSTONES = {
    "no tombstone": (BY_GUARD, Marks(START), False),
    "an older mark, which the job's account can make": (BY_GUARD, Marks(EARLIER), False),
    "the claim was cancelled before": (BY_GUARD, Marks(None, START - 5), True),
    "the claim was cancelled in the second of the start": (BY_GUARD, Marks(START, START), True),
    "the claim was cancelled while it ran": (BY_GUARD, Marks(START, START + 1), False),
    "the claim was cancelled while the script was on its way": (BY_GUARD, Marks(None, START + 1), True),
    "the claim was cancelled later, and the payload had removed the mark": (
        BY_GUARD, Marks(None, START + GUARD_DELAY_S + 1), False,
    ),
    "the claim was cancelled before, and the job computed nevertheless": (
        replace(BY_GUARD, ended_at=START + LONGEST_REFUSAL_S + 1), Marks(None, START - 5), False,
    ),
    "it ended with another status": (replace(BY_GUARD, exit_status=wait_status(3, 0)), Marks(EARLIER, EARLIER), False),
    "it never started": (replace(BY_GUARD, started_at=None), Marks(EARLIER, EARLIER), False),
}  # fmt: skip

EARLIER_STARTS = {
    "a record of an earlier run": ([RAN_BEFORE], {}, True),
    "a record without an end": ([replace(RAN_BEFORE, state="RUNNING", ended_at=None)], {}, True),
    "a record of the same start": ([replace(BY_GUARD, ended_at=None)], {}, False),
    "a part of the same run, before it was resized": (
        [replace(RAN_BEFORE, state="RESIZING", ended_at=START)], {}, False,
    ),
    "the supervisor saw it run": ([], {EARLIER: EARLIER + 1}, True),
    "the supervisor saw this run": ([], {START: START + 1}, False),
}  # fmt: skip


@pytest.mark.parametrize("case", TOMBSTONES)
def test_which_records_are_of_a_start_that_a_tombstone_refused(case: str) -> None:
    row, marks, refused = TOMBSTONES[case]
    assert is_refused_start(row, marks) is refused


@pytest.mark.parametrize("case", EARLIER_STARTS)
def test_which_records_are_of_a_second_start(case: str) -> None:
    others, seen, refused = EARLIER_STARTS[case]
    assert is_refused_start(BY_GUARD, Marks(EARLIER), [*others, BY_GUARD], seen) is refused


def snapshot(marks: Marks, *records: Row) -> Snapshot:
    return Snapshot((), records, {KEY.comment: "999"}, {KEY.comment: 42}, marks={KEY.comment: marks})


def test_a_job_that_ran_twice_ended_when_it_ended_first() -> None:
    """A controller that was killed before it saved the job's end starts the job again, and the guard refuses."""
    end = snapshot(Marks(EARLIER - 90), BY_GUARD, RAN_BEFORE).ended(KEY)
    assert end is not None
    assert (end.state, end.ended_at, end.ran_s) == ("COMPLETED", EARLIER, 90)


def test_a_refused_start_alone_is_no_end_for_spool_and_accounting() -> None:
    seen = {EARLIER: EARLIER + 1}
    assert snapshot(Marks(), BY_GUARD).ended(KEY, seen) is None
    assert snapshot(Marks(), BY_GUARD).refused_start(KEY, [], seen)
    assert snapshot(Marks()).records_of(KEY, [BY_GUARD], seen).end is None
    assert snapshot(Marks()).refused_start(KEY, [BY_GUARD], seen)
    assert not snapshot(Marks(START)).refused_start(KEY, [BY_GUARD])


REQUEUED_RUN = replace(RECORDED, state="REQUEUED", started_at=EARLIER - 90, ended_at=EARLIER)


def test_all_runs_of_a_requeued_job_count() -> None:
    again = replace(RECORDED, started_at=START + 120, ended_at=START + 150, restarts=1)
    end = snapshot(Marks(), REQUEUED_RUN, again).ended(KEY)
    assert end is not None
    assert (end.phase, end.requeued, end.ran_s) == (Phase.ENDED, True, 90 + 30)


def test_a_refused_restart_does_not_change_the_time_that_ran() -> None:
    end = snapshot(Marks(START), REQUEUED_RUN, replace(BY_GUARD, restarts=1)).ended(KEY)
    assert end is not None
    assert (end.requeued, end.started_at, end.ended_at, end.ran_s) == (True, EARLIER - 90, EARLIER, 90)


def test_without_a_record_of_the_first_run_the_queue_counts() -> None:
    """Without hook and accounting, the controller remembers only that it requeued the job."""
    seen = {EARLIER - 90: EARLIER}
    end = snapshot(Marks(START)).records_of(KEY, [replace(BY_GUARD, restarts=1)], seen).end
    assert end is not None
    assert (end.requeued, end.ran_s) == (True, 90)
    cancelled = Row(42, "999", "CANCELLED", None, START, restarts=1)
    end = snapshot(Marks(START)).records_of(KEY, [cancelled], seen).end
    assert end is not None
    assert (end.started_at, end.ran_s) == (EARLIER - 90, 90)


def test_a_run_is_never_shorter_than_it_was_seen() -> None:
    """The last record of a resized job begins at the resize."""
    resized = replace(RECORDED, started_at=START, ended_at=START + 3)
    end = snapshot(Marks()).records_of(KEY, [resized], {START - 65: START + 2}).end
    assert end is not None
    assert (end.started_at, end.ran_s) == (START - 65, 68)
    first = replace(resized, state="RESIZING", started_at=START - 65, ended_at=START)
    end = snapshot(Marks()).records_of(KEY, [resized, first]).end
    assert end is not None
    assert (end.started_at, end.ran_s) == (START - 65, 68)


SPANS = st.lists(st.tuples(st.integers(0, 500), st.integers(0, 100)).map(lambda pair: (pair[0], sum(pair))))


@given(SPANS)
def test_spans_count_each_second_once(found: list[tuple[int, int]]) -> None:
    seconds = {second for start, end in found for second in range(start, end)}
    assert seconds_in(found) == len(seconds)


async def recorded(box: Box, key: JobKey) -> None:
    """Wait until the completion hook wrote a record of the claim."""
    spool = box.folder(key).parent.parent / "spool"
    deadline = time.monotonic() + WAIT_S
    while not [file for file in spool.glob("[0-9]*") if key.comment in file.read_text()]:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)


async def is_past(mark: Path) -> None:
    """Wait until a job that starts now counts as started after the mark."""
    while time.time() < mark.stat().st_ctime + CLOCK_SKEW_S + 1:
        await asyncio.sleep(0.2)


async def test_a_start_that_a_tombstone_refuses_is_no_run_and_its_payload_does_not_run(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey, held: Callable[[], None]
) -> None:
    """The scancel after the tombstone was lost."""
    await cluster.submit(key, bash("echo ran"), SMALL)
    (box.folder(key) / "tombstone").touch()
    held()
    await recorded(box, key)
    monitor.watch(key)
    # Accounting may still show the job as running.
    async with asyncio.timeout(WAIT_S):
        while (job := monitor.observe(key)) != replace(REFUSED_START, stopped=True):
            await monitor.changed(key, job, 5)
    await refused(cluster, key)


async def refused(cluster: Cluster, key: JobKey) -> None:
    """Assert that the guard ended the script before its payload."""
    output = (await cluster.read_output({key: 0}))[key]
    assert b"deepgrid: " in output
    assert b"ran" not in output.splitlines()


async def test_a_mark_made_before_the_start_is_the_accounts_fault(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey, held: Callable[[], None]
) -> None:
    """Only the job's account can make such a mark. The payload does not run, and the provider is not blamed."""
    await cluster.submit(key, bash("echo ran"), SMALL)
    mark = box.folder(key) / "run" / "started"
    mark.mkdir()
    await is_past(mark)
    held()
    end = await ended(monitor, key)
    assert (end.state, end.exit_status, end.began) == ("FAILED", GUARD_STATUS << 8, True)
    await refused(cluster, key)


FORGERIES = {
    "does nothing": "true",
    "touches the mark": "touch -d @1 started",
    "makes the mark again": "rmdir started && mkdir started",
    "replaces the mark with an older folder": 'rmdir started && mv "$OLD" started && touch -d @1 started',
    "replaces the mark with a link to one": 'rmdir started && ln -s "$OLD" started && touch -h -d @1 started',
}


async def test_a_payload_with_the_guards_status_is_billed_whatever_it_does_to_the_mark(
    box: Box, cluster: Cluster, monitor: SlurmMonitor
) -> None:
    """Otherwise computing would be free, and the provider blamed. The change time of a mark cannot be set back."""
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
