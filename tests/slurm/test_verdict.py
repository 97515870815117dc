"""What is concluded about a claim that queue and spool do not know: absent only when nothing speaks against it."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from deepgrid.lifecycle.slurm_state import ABSENT, Phase, SlurmJob
from deepgrid.slurm.observe.commands import Row
from deepgrid.slurm.observe.runs import GUARDED, Marks
from deepgrid.slurm.observe.snapshot import Snapshot
from deepgrid.slurm.observe.verdict import (
    ABSENT_BUT_ACCOUNTED,
    FORGOTTEN,
    REFUSED_START,
    RUNAWAY,
    SUDDENLY_EMPTY,
    VERDICT_DEFAULTS,
    Verdicts,
)
from tests.slurm.rows import KEY, OURS, RECORDED

EMPTIED_S, RUNAWAY_S, REMEMBERED_S = (
    VERDICT_DEFAULTS.empty_queue_s,
    VERDICT_DEFAULTS.runaway_s,
    VERDICT_DEFAULTS.remembered_s,
)
RUNNING = replace(OURS, state="RUNNING", ended_at=None)
OTHER = replace(KEY, job_id=6)
OTHERS = replace(RUNNING, slurm_id=43)
T = 1000.0


def concluded(
    verdicts: Verdicts, now: float, *queue: Row, rows: tuple[Row, ...] = (), memory: tuple[Row, ...] | None = None
) -> SlurmJob:
    """Where the claim stands at this moment by the queue, accounting's rows and what the controller remembers.

    Unless told otherwise it does not know more of the claim than accounting does.
    """
    look = Snapshot(queue, (), {KEY.comment: "999"}, {KEY.comment: 42}, held=len(queue))
    found = verdicts.from_snapshot(look, [KEY], now)
    return found.get(KEY) or verdicts.from_records(look, [KEY], rows if memory is None else memory, rows, now)[KEY]


def test_a_queue_that_is_empty_where_the_job_was_a_moment_ago_proves_nothing() -> None:
    verdicts = Verdicts()
    assert concluded(verdicts, T, RUNNING, OTHERS).phase is Phase.RUNNING
    assert concluded(verdicts, T + 1) == SUDDENLY_EMPTY
    assert concluded(verdicts, T + EMPTIED_S - 1) == SUDDENLY_EMPTY
    assert concluded(verdicts, T + EMPTIED_S) == ABSENT, "but not for ever"


def test_a_queue_that_lost_one_job_of_several_is_believed() -> None:
    verdicts = Verdicts()
    concluded(verdicts, T, RUNNING, OTHERS)
    assert concluded(verdicts, T + 1, OTHERS) == ABSENT


def test_a_job_that_nobody_saw_alive_may_be_absent_at_once() -> None:
    assert concluded(Verdicts(), T) == ABSENT


def test_a_job_that_is_there_again_is_seen_again() -> None:
    verdicts = Verdicts()
    concluded(verdicts, T, RUNNING)
    concluded(verdicts, T + 1)
    assert concluded(verdicts, T + 2, RUNNING).phase is Phase.RUNNING
    assert concluded(verdicts, T + 1 + EMPTIED_S) == SUDDENLY_EMPTY, "counted from when it was seen last"


def test_an_end_in_accounting_counts_though_the_queue_is_suddenly_empty() -> None:
    verdicts = Verdicts()
    concluded(verdicts, T, RUNNING)
    assert concluded(verdicts, T + 1, rows=(OURS,)).phase is Phase.ENDED


@pytest.mark.parametrize("state", ["RUNNING", "FAILED"])
def test_accounting_without_an_end_is_waited_on_and_not_for_ever(state: str) -> None:
    """It hears of ends in its own time, first as FAILED at an unknown time; of jobs that were forgotten never."""
    verdicts, row = Verdicts(), replace(OURS, state=state, ended_at=None)
    assert concluded(verdicts, T, rows=(row,)) == ABSENT_BUT_ACCOUNTED
    assert concluded(verdicts, T + RUNAWAY_S - 1, rows=(row,)) == ABSENT_BUT_ACCOUNTED
    assert concluded(verdicts, T + RUNAWAY_S, rows=(row,)) == RUNAWAY
    assert concluded(verdicts, T + RUNAWAY_S + 1, rows=(OURS,)).phase is Phase.ENDED


def test_the_wait_for_an_end_begins_anew_when_the_job_is_seen_alive() -> None:
    verdicts, row = Verdicts(), replace(OURS, state="RUNNING", ended_at=None)
    concluded(verdicts, T, rows=(row,))
    concluded(verdicts, T + RUNAWAY_S - 1, RUNNING)
    assert concluded(verdicts, T + RUNAWAY_S, OTHERS, rows=(row,)) == ABSENT_BUT_ACCOUNTED


UNFINISHED = replace(OURS, state="RUNNING", ended_at=None)


def remembered(verdicts: Verdicts, now: float, *memory: Row) -> SlurmJob:
    """Where the claim stands when accounting knows it as unfinished, and the controller remembers this."""
    return concluded(verdicts, now, OTHERS, rows=(UNFINISHED,), memory=memory)


def test_a_job_that_was_alive_just_now_and_that_the_controller_does_not_remember_is_forgotten() -> None:
    """It was killed before it saved its state; accounting would call the job running for ever."""
    verdicts = Verdicts()
    concluded(verdicts, T, RUNNING)
    assert remembered(verdicts, T + REMEMBERED_S - 1) == FORGOTTEN
    assert remembered(verdicts, T + 10 * REMEMBERED_S) == FORGOTTEN, "and stays so"
    concluded(verdicts, T + 10 * REMEMBERED_S, RUNNING)
    assert remembered(verdicts, T + 10 * REMEMBERED_S + 1, UNFINISHED) == ABSENT_BUT_ACCOUNTED, "until it is seen"


def test_a_job_that_was_just_submitted_counts_as_alive() -> None:
    """Its controller may be killed before anybody saw it in the queue, and have told accounting of its start."""
    verdicts = Verdicts()
    verdicts.submitted(KEY, T)
    assert remembered(verdicts, T + REMEMBERED_S - 1) == FORGOTTEN


def test_a_start_that_a_tombstone_barred_is_known_though_accounting_still_calls_it_running() -> None:
    """The hook has told of it; the accounting hears of ends in its own time, or never."""
    verdicts = Verdicts()
    verdicts.submitted(KEY, T)
    refused = replace(RECORDED, state="FAILED", exit_status=GUARDED, ended_at=OURS.started_at)
    marks = {KEY.comment: Marks(tombstone=OURS.started_at)}
    look = Snapshot((OTHERS,), (refused,), {KEY.comment: OURS.user}, {KEY.comment: OURS.slurm_id}, marks=marks, held=1)
    assert verdicts.from_records(look, [KEY], [], [UNFINISHED], T + 1) == {KEY: replace(REFUSED_START, stopped=True)}
    begun = replace(look, marks={KEY.comment: Marks(started=1, tombstone=OURS.started_at)})
    assert verdicts.from_records(begun, [KEY], [], [UNFINISHED], T + 1) == {KEY: FORGOTTEN}, "it may have run before"


def test_a_start_whose_mark_was_there_before_is_judged_by_accounting() -> None:
    """The controller lost the first start, or the job's account made the mark: accounting tells which."""
    started = OURS.started_at or 0
    second = replace(RECORDED, state="FAILED", exit_status=GUARDED, ended_at=started + 1)
    marks = {KEY.comment: Marks(started=started - 60)}
    look = Snapshot((), (second,), {KEY.comment: OURS.user}, {KEY.comment: OURS.slurm_id}, marks=marks, held=1)
    verdicts = Verdicts()
    assert verdicts.from_snapshot(look, [KEY], T) == {}
    first = replace(UNFINISHED, started_at=started - 61)
    assert verdicts.from_records(look, [KEY], [], [first], T)[KEY].phase is not Phase.ENDED, "the cluster's fault"
    end = verdicts.from_records(look, [KEY], [], [], T)[KEY]
    assert (end.phase, end.exit_status, end.ran_s) == (Phase.ENDED, GUARDED, 1), "the account's own"


def test_also_a_job_that_seems_forgotten_is_not_lost_while_the_whole_queue_is_suddenly_empty() -> None:
    """The controller may find its state again; accounting does not always hear that it came back without."""
    verdicts = Verdicts()
    concluded(verdicts, T, RUNNING)
    for second, state in ((1, SUDDENLY_EMPTY), (EMPTIED_S - 1, SUDDENLY_EMPTY), (EMPTIED_S, FORGOTTEN)):
        assert concluded(verdicts, T + second, rows=(UNFINISHED,), memory=()) == state


def test_who_was_not_looking_cannot_tell_a_forgotten_job_from_one_that_ended_long_ago() -> None:
    assert remembered(Verdicts(), T) == ABSENT_BUT_ACCOUNTED
    verdicts = Verdicts()
    concluded(verdicts, T, RUNNING)
    assert remembered(verdicts, T + REMEMBERED_S) == ABSENT_BUT_ACCOUNTED


def test_an_end_that_only_the_controller_knows_counts_whatever_else_is_broken() -> None:
    assert remembered(Verdicts(), T, OURS).phase is Phase.ENDED
    assert concluded(Verdicts(), T, OTHERS, memory=(OURS,)).phase is Phase.ENDED, "accounting never heard of the job"
    verdicts = Verdicts()
    concluded(verdicts, T, RUNNING)
    assert concluded(verdicts, T + 1, memory=(OURS,)).phase is Phase.ENDED, "nor is anything else in the queue"


def test_a_state_that_nobody_has_heard_of_is_logged_once_and_waited_on(caplog: pytest.LogCaptureFixture) -> None:
    verdicts, splendid = Verdicts(), replace(RUNNING, state="SPLENDID")
    with caplog.at_level(logging.WARNING):
        for second in range(3):
            assert concluded(verdicts, T + second, splendid).phase is Phase.UNKNOWN
            assert concluded(verdicts, T + second, rows=(splendid,)).phase is Phase.UNKNOWN
        assert [record.getMessage() for record in caplog.records] == [
            "job 5: unknown Slurm state SPLENDID, waiting for the next one"
        ]
        concluded(verdicts, T + 3, replace(splendid, state="MAGNIFICENT"))
    assert len(caplog.records) == 2
