"""A start that the guard refused is not a run. A payload that ends with the guard's status is one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.commands.job_row import Row
from deepgrid.slurm.commands.versions import wait_status
from deepgrid.slurm.observe.run_records import (
    CLOCK_SKEW_S,
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
from tests.slurm.support import SMALL, WAIT_S, Box, bash, ended, new_key, printed

START = 1000
BY_GUARD = replace(RECORDED, state="FAILED", started_at=START, ended_at=START, exit_status=wait_status(GUARD_STATUS, 0))
EARLIER = START - CLOCK_SKEW_S - 1
RAN_BEFORE = replace(RECORDED, started_at=EARLIER - 90, ended_at=EARLIER)

RAN, BARRED = Marks(started=True), Marks(tombstone=True)
TOMBSTONES = {
    "no tombstone": (BY_GUARD, RAN, False),
    "no tombstone, and nothing ran": (BY_GUARD, Marks(), False),
    "the claim was cancelled before it ran": (BY_GUARD, BARRED, True),
    "the claim was cancelled while it ran": (BY_GUARD, Marks(started=True, tombstone=True), False),
    "the claim was cancelled before, and the job computed nevertheless": (
        replace(BY_GUARD, ended_at=START + LONGEST_REFUSAL_S + 1), BARRED, False,
    ),
    "it ended with another status": (replace(BY_GUARD, exit_status=wait_status(3, 0)), BARRED, False),
    "it never started": (replace(BY_GUARD, started_at=None), BARRED, False),
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
    assert is_refused_start(BY_GUARD, Marks(), [*others, BY_GUARD], seen) is refused


def snapshot(marks: Marks, *records: Row) -> Snapshot:
    return Snapshot((), records, {KEY.comment: "999"}, {KEY.comment: 42}, marks={KEY.comment: marks})


def test_a_job_that_ran_twice_ended_when_it_ended_first() -> None:
    """A controller that was killed before it saved the job's end starts the job again, and the guard refuses."""
    end = snapshot(Marks(), BY_GUARD, RAN_BEFORE).ended(KEY)
    assert end is not None
    assert (end.state, end.ended_at, end.ran_s) == ("COMPLETED", EARLIER, 90)


def test_a_refused_start_alone_is_no_end_for_spool_and_accounting() -> None:
    seen = {EARLIER: EARLIER + 1}
    assert snapshot(Marks(), BY_GUARD).ended(KEY, seen) is None
    assert snapshot(Marks(), BY_GUARD).refused_start(KEY, [], seen)
    assert snapshot(Marks()).records_of(KEY, [BY_GUARD], seen).end is None
    assert snapshot(Marks()).refused_start(KEY, [BY_GUARD], seen)
    assert not snapshot(Marks()).refused_start(KEY, [BY_GUARD])


REQUEUED_RUN = replace(RECORDED, state="REQUEUED", started_at=EARLIER - 90, ended_at=EARLIER)


def test_all_runs_of_a_requeued_job_count() -> None:
    again = replace(RECORDED, started_at=START + 120, ended_at=START + 150, restarts=1)
    end = snapshot(Marks(), REQUEUED_RUN, again).ended(KEY)
    assert end is not None
    assert (end.phase, end.requeued, end.ran_s) == (Phase.ENDED, True, 90 + 30)


def test_a_refused_restart_does_not_change_the_time_that_ran() -> None:
    end = snapshot(Marks(), REQUEUED_RUN, replace(BY_GUARD, restarts=1)).ended(KEY)
    assert end is not None
    assert (end.requeued, end.started_at, end.ended_at, end.ran_s) == (True, EARLIER - 90, EARLIER, 90)


def test_without_a_record_of_the_first_run_the_queue_counts() -> None:
    """Without hook and accounting, the controller remembers only that it requeued the job."""
    seen = {EARLIER - 90: EARLIER}
    end = snapshot(Marks()).records_of(KEY, [replace(BY_GUARD, restarts=1)], seen).end
    assert end is not None
    assert (end.requeued, end.ran_s) == (True, 90)
    cancelled = Row(42, "999", "CANCELLED", None, START, restarts=1)
    end = snapshot(Marks()).records_of(KEY, [cancelled], seen).end
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


async def test_a_file_removed_before_the_start_is_the_accounts_fault(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey, held: Callable[[], None]
) -> None:
    """Only the job's account can remove it. The payload does not run, and the provider is not blamed."""
    await cluster.submit(key, bash("echo ran"), SMALL)
    (box.folder(key) / "run" / "unstarted").unlink()
    held()
    end = await ended(monitor, key)
    assert (end.state, end.exit_status, end.began) == ("FAILED", GUARD_STATUS << 8, True)
    await refused(cluster, key)


FORGERIES = {
    "does nothing": "true",
    "makes the file again": "touch unstarted",
    "makes it again with an old time": "touch -d @1 unstarted",
    "makes a folder in its place": "mkdir unstarted",
    "makes a FIFO in its place": "mkfifo unstarted",
    "makes a link to a file of the supervisor": "ln -s ../lock unstarted",
}


async def test_a_payload_with_the_guards_status_is_billed_whatever_it_does_to_the_file(
    box: Box, cluster: Cluster, monitor: SlurmMonitor
) -> None:
    """Otherwise computing would be free, and the provider blamed."""
    keys = {new_key(): trick for trick in FORGERIES}
    for key, trick in keys.items():
        await cluster.submit(key, bash(f"({FORGERIES[trick]}) && echo done; exit {GUARD_STATUS}"), SMALL)
    for key in keys:
        await printed(cluster, key)
        (box.folder(key) / "tombstone").touch()  # as if the customer had cancelled at once
    for key, trick in keys.items():
        end = await ended(monitor, key)
        assert (end.state, end.exit_status) == ("FAILED", GUARD_STATUS << 8), trick
        assert (await cluster.read_output({key: 0}))[key] == b"done\n", trick


async def test_the_file_put_back_after_the_start_proves_nothing(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey, held: Callable[[], None]
) -> None:
    """Another job of the account keeps the supervisor's own file, and puts it back when the payload runs."""
    await cluster.submit(key, bash(f"echo ran; until [ -e leave ]; do sleep 0.1; done; exit {GUARD_STATUS}"), SMALL)
    run = box.folder(key) / "run"
    assert not (await cluster.snapshot([key])).marks_of(key).started
    (run / "kept").hardlink_to(run / "unstarted")  # where the kernel does not protect links
    held()
    await printed(cluster, key)
    (run / "kept").rename(run / "unstarted")
    (box.folder(key) / "tombstone").touch()
    (run / "leave").touch()
    end = await ended(monitor, key)
    assert (end.state, end.exit_status) == ("FAILED", GUARD_STATUS << 8)
    assert (await cluster.snapshot([key])).marks_of(key).started
