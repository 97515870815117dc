"""Verdicts on claims that queue and spool do not know. A claim is absent only without evidence for it."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from deepgrid.lifecycle.slurm_state import ABSENT, Phase, SlurmJob
from deepgrid.slurm.commands.job_row import Row
from deepgrid.slurm.observe.run_records import GUARDED, Marks
from deepgrid.slurm.observe.snapshot import Snapshot
from deepgrid.slurm.observe.verdict import (
    ABSENT_BUT_ACCOUNTED,
    CANCELLER_UNKNOWN,
    FORGOTTEN,
    REFUSED_START,
    RUNAWAY,
    SUDDENLY_EMPTY,
    Verdicts,
    VerdictSettings,
)
from tests.slurm.rows import KEY, OURS, RECORDED

EMPTIED_S, RUNAWAY_S, REMEMBERED_S = (
    VerdictSettings().empty_queue_s,
    VerdictSettings().runaway_s,
    VerdictSettings().remembered_s,
)
RUNNING = replace(OURS, state="RUNNING", ended_at=None)
OTHER = replace(KEY, job_id=6)
OTHERS = replace(RUNNING, slurm_id=43)
T = 1000.0


def concluded(
    verdicts: Verdicts, now: float, *queue: Row, rows: tuple[Row, ...] = (), memory: tuple[Row, ...] | None = None
) -> SlurmJob:
    """Return the verdict from the queue, accounting and the controller's memory, by default with the same rows."""
    snapshot = Snapshot(queue, (), {KEY.comment: "999"}, {KEY.comment: 42}, held=len(queue))
    found = verdicts.from_snapshot(snapshot, [KEY], now)
    return found.get(KEY) or verdicts.from_records(snapshot, [KEY], rows if memory is None else memory, rows, now)[KEY]


def test_an_empty_queue_that_held_the_job_a_moment_ago_proves_nothing() -> None:
    verdicts = Verdicts()
    assert concluded(verdicts, T, RUNNING, OTHERS).phase is Phase.RUNNING
    assert concluded(verdicts, T + 1) == SUDDENLY_EMPTY
    assert concluded(verdicts, T + EMPTIED_S - 1) == SUDDENLY_EMPTY
    assert concluded(verdicts, T + EMPTIED_S) == ABSENT, "but only for a while"


def test_a_job_that_leaves_a_queue_with_other_jobs_is_absent() -> None:
    verdicts = Verdicts()
    concluded(verdicts, T, RUNNING, OTHERS)
    assert concluded(verdicts, T + 1, OTHERS) == ABSENT


def test_a_job_that_was_never_seen_alive_may_be_absent_at_once() -> None:
    assert concluded(Verdicts(), T) == ABSENT


def test_a_job_that_is_in_the_queue_again_counts_as_alive() -> None:
    verdicts = Verdicts()
    concluded(verdicts, T, RUNNING)
    concluded(verdicts, T + 1)
    assert concluded(verdicts, T + 2, RUNNING).phase is Phase.RUNNING
    assert concluded(verdicts, T + 1 + EMPTIED_S) == SUDDENLY_EMPTY, "counted from the last time it was seen"


def test_an_end_in_accounting_counts_although_the_queue_is_suddenly_empty() -> None:
    verdicts = Verdicts()
    concluded(verdicts, T, RUNNING)
    assert concluded(verdicts, T + 1, rows=(OURS,)).phase is Phase.ENDED


@pytest.mark.parametrize("state", ["RUNNING", "FAILED"])
def test_a_job_without_an_end_in_accounting_becomes_a_runaway(state: str) -> None:
    """Accounting shows ends late, first as FAILED at an unknown time. It never shows the end of a forgotten job."""
    verdicts, row = Verdicts(), replace(OURS, state=state, ended_at=None)
    assert concluded(verdicts, T, rows=(row,)) == ABSENT_BUT_ACCOUNTED
    assert concluded(verdicts, T + RUNAWAY_S - 1, rows=(row,)) == ABSENT_BUT_ACCOUNTED
    assert concluded(verdicts, T + RUNAWAY_S, rows=(row,)) == RUNAWAY
    assert concluded(verdicts, T + RUNAWAY_S + 1, rows=(OURS,)).phase is Phase.ENDED


def test_the_wait_for_an_end_restarts_when_the_job_is_seen_alive() -> None:
    verdicts, row = Verdicts(), replace(OURS, state="RUNNING", ended_at=None)
    concluded(verdicts, T, rows=(row,))
    concluded(verdicts, T + RUNAWAY_S - 1, RUNNING)
    assert concluded(verdicts, T + RUNAWAY_S, OTHERS, rows=(row,)) == ABSENT_BUT_ACCOUNTED


UNFINISHED = replace(OURS, state="RUNNING", ended_at=None)


def remembered(verdicts: Verdicts, now: float, *memory: Row) -> SlurmJob:
    """Return the verdict when accounting shows the job as unfinished, and the controller remembers these rows."""
    return concluded(verdicts, now, OTHERS, rows=(UNFINISHED,), memory=memory)


def test_a_job_that_was_alive_and_that_the_controller_does_not_remember_is_forgotten() -> None:
    """The controller was killed before it saved its state. Accounting would show the job as running forever."""
    verdicts = Verdicts()
    concluded(verdicts, T, RUNNING)
    assert remembered(verdicts, T + REMEMBERED_S - 1) == FORGOTTEN
    assert remembered(verdicts, T + 10 * REMEMBERED_S) == FORGOTTEN, "also later"
    concluded(verdicts, T + 10 * REMEMBERED_S, RUNNING)
    assert remembered(verdicts, T + 10 * REMEMBERED_S + 1, UNFINISHED) == ABSENT_BUT_ACCOUNTED, "until it is seen again"


def test_a_job_that_was_just_submitted_counts_as_alive() -> None:
    """The controller may be killed before a poll saw the job, but after it reported the start to accounting."""
    verdicts = Verdicts()
    verdicts.submitted(KEY, T)
    assert remembered(verdicts, T + REMEMBERED_S - 1) == FORGOTTEN


def test_a_start_barred_by_a_tombstone_is_known_although_accounting_shows_it_running() -> None:
    """The hook has recorded it. Accounting shows ends late, or never."""
    verdicts = Verdicts()
    verdicts.submitted(KEY, T)
    refused = replace(RECORDED, state="FAILED", exit_status=GUARDED, ended_at=OURS.started_at)
    marks = {KEY.comment: Marks(tombstone=True)}
    snapshot = Snapshot(
        (OTHERS,), (refused,), {KEY.comment: OURS.user}, {KEY.comment: OURS.slurm_id}, marks=marks, held=1
    )
    assert verdicts.from_records(snapshot, [KEY], [], [UNFINISHED], T + 1) == {
        KEY: replace(REFUSED_START, stopped=True)
    }
    begun = replace(snapshot, marks={KEY.comment: Marks(started=True, tombstone=True)})
    assert verdicts.from_records(begun, [KEY], [], [UNFINISHED], T + 1)[KEY].phase is Phase.ENDED, "it may have run"


def test_accounting_decides_about_an_end_with_the_guards_status() -> None:
    """The controller lost the first start, or the payload ended with this status. Accounting decides which."""
    started = OURS.started_at or 0
    second = replace(RECORDED, state="FAILED", exit_status=GUARDED, ended_at=started + 1)
    marks = {KEY.comment: Marks(started=True)}
    snapshot = Snapshot((), (second,), {KEY.comment: OURS.user}, {KEY.comment: OURS.slurm_id}, marks=marks, held=1)
    verdicts = Verdicts()
    assert verdicts.from_snapshot(snapshot, [KEY], T) == {}
    first = replace(UNFINISHED, started_at=started - 61)
    assert verdicts.from_records(snapshot, [KEY], [], [first], T)[KEY].phase is not Phase.ENDED, (
        "the cluster is at fault"
    )
    end = verdicts.from_records(snapshot, [KEY], [], [], T)[KEY]
    assert (end.phase, end.exit_status, end.ran_s) == (Phase.ENDED, GUARDED, 1), "the account is at fault"


def test_a_forgotten_job_is_not_lost_while_the_whole_queue_is_suddenly_empty() -> None:
    """The controller may find its state again.

    Accounting does not always know that the controller has lost its state.
    """
    verdicts = Verdicts()
    concluded(verdicts, T, RUNNING)
    for second, state in ((1, SUDDENLY_EMPTY), (EMPTIED_S - 1, SUDDENLY_EMPTY), (EMPTIED_S, FORGOTTEN)):
        assert concluded(verdicts, T + second, rows=(UNFINISHED,), memory=()) == state


def test_a_job_that_was_not_seen_alive_recently_is_not_called_forgotten() -> None:
    assert remembered(Verdicts(), T) == ABSENT_BUT_ACCOUNTED
    verdicts = Verdicts()
    concluded(verdicts, T, RUNNING)
    assert remembered(verdicts, T + REMEMBERED_S) == ABSENT_BUT_ACCOUNTED


def test_an_end_that_only_the_controller_knows_counts() -> None:
    assert remembered(Verdicts(), T, OURS).phase is Phase.ENDED
    assert concluded(Verdicts(), T, OTHERS, memory=(OURS,)).phase is Phase.ENDED, "accounting does not know the job"
    verdicts = Verdicts()
    concluded(verdicts, T, RUNNING)
    assert concluded(verdicts, T + 1, memory=(OURS,)).phase is Phase.ENDED, "the queue is empty too"


def test_an_unknown_state_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
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


CANCELLED = replace(RECORDED, state="CANCELLED")
CANCELLER_S = VerdictSettings().canceller_s


def after_the_hook(verdicts: Verdicts, now: float, *accounted: Row) -> SlurmJob:
    """Return the verdict on a job that the completion hook calls cancelled."""
    snapshot = Snapshot((), (CANCELLED,), {KEY.comment: "999"}, {KEY.comment: 42})
    found = verdicts.from_snapshot(snapshot, [KEY], now)
    return found.get(KEY) or verdicts.from_records(snapshot, [KEY], (), accounted, now)[KEY]


@pytest.mark.parametrize(("canceller", "by_site"), [("0", True), ("1000", True), ("999", False)])
def test_accounting_says_whether_another_account_cancelled_the_job(canceller: str, by_site: bool) -> None:
    row = replace(OURS, state="CANCELLED", cancelled_by=canceller)
    assert after_the_hook(Verdicts(), T, row).cancelled_by_site is by_site


def test_a_job_that_its_own_account_cancelled_too_was_cancelled_by_itself() -> None:
    rows = [replace(OURS, state="CANCELLED", cancelled_by=one) for one in ("0", "999")]
    assert after_the_hook(Verdicts(), T, *rows).cancelled_by_site is False


@pytest.mark.situation(
    "ends", "accounting does not say within a minute who cancelled a job", "it counts as cancelled by itself",
)  # fmt: skip
def test_accounting_gets_a_minute_to_say_who_cancelled() -> None:
    verdicts, late = Verdicts(), replace(OURS, state="RUNNING", ended_at=None)
    assert after_the_hook(verdicts, T, late) == CANCELLER_UNKNOWN
    assert after_the_hook(verdicts, T + CANCELLER_S - 1) == CANCELLER_UNKNOWN
    end = after_the_hook(verdicts, T + CANCELLER_S)
    assert (end.state, end.cancelled_by_site) == ("CANCELLED", None)


def test_without_accounting_nobody_waits_for_the_canceller() -> None:
    verdicts = Verdicts()
    verdicts.has_accounting = False
    assert after_the_hook(verdicts, T).cancelled_by_site is None


def test_the_longest_suspension_that_is_known_counts() -> None:
    """The supervisor saw 40 s in the queue. Accounting knows all of it."""
    verdicts, live = Verdicts(), replace(RUNNING, used_s=20)
    snapshot = Snapshot((live,), (), {KEY.comment: "999"}, {KEY.comment: 42}, clock=160)
    verdicts.from_snapshot(snapshot, [KEY], T)
    assert concluded(verdicts, T + 1, rows=(OURS,)).run_s == 20
    assert concluded(verdicts, T + 1, rows=(replace(OURS, suspended_s=50),)).run_s == 10


@pytest.mark.parametrize("state", ["COMPLETING", "STAGE_OUT", "STOPPED", "RESIZING", "SIGNALING"])
def test_time_after_the_end_of_the_script_is_no_suspension(state: str) -> None:
    """A child that ignores TERM held its job in COMPLETING for minutes, and all of them came off the bill."""
    verdicts = Verdicts()
    for clock, row in ((150, replace(RUNNING, used_s=50)), (460, replace(RUNNING, state=state, used_s=60))):
        live = Snapshot((row,), (), {KEY.comment: "999"}, {KEY.comment: 42}, clock=clock)
        verdicts.from_snapshot(live, [KEY], T)
    end = concluded(verdicts, T + 1, rows=(OURS,))
    assert (end.run_s, end.suspended_s) == (60, 0)


def test_a_job_that_slurm_preempts_ends_as_preempted() -> None:
    """Slurm 22.05 sends TERM at the begin of the grace time, and calls the end FAILED. The customer paid for it."""
    failed, verdicts = replace(OURS, state="FAILED", exit_status=143 << 8), Verdicts()
    concluded(verdicts, T, replace(RUNNING, preempted=True), OTHERS)
    assert concluded(verdicts, T + 1, rows=(failed,)).state == "PREEMPTED"
    assert concluded(verdicts, T + 1, rows=(OURS,)).state == "COMPLETED"
    assert concluded(Verdicts(), T, rows=(failed,)).state == "FAILED"
    assert concluded(Verdicts(), T, rows=(failed,), memory=(replace(failed, preempted=True),)).state == "PREEMPTED"


@pytest.mark.parametrize(("status", "state"), [(143 << 8, "PREEMPTED"), (15, "PREEMPTED"), (256, "FAILED")])
def test_a_job_that_term_ended_is_looked_up_in_the_controllers_memory(status: int, state: str) -> None:
    """The hook records the end at once, and no poll saw the job in its grace time."""
    failed = replace(RECORDED, state="FAILED", exit_status=status)
    snapshot = Snapshot((), (failed,), {KEY.comment: "999"}, {KEY.comment: 42})
    verdicts, memory = Verdicts(), [replace(failed, preempted=True)]
    found = verdicts.from_snapshot(snapshot, [KEY], T)
    end = found.get(KEY) or verdicts.from_records(snapshot, [KEY], memory, [], T)[KEY]
    assert end.state == state
    others = Verdicts().from_records(snapshot, [KEY], [failed], [], T)[KEY]
    assert others.state == "FAILED"
