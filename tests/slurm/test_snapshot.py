"""Snapshots: the claim that a row belongs to, the record that counts, and incomplete answers."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.errors import SlurmUnreachable
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.slurm.commands.job_row import Row
from deepgrid.slurm.commands.sacct import Sacct
from deepgrid.slurm.observe.run_records import Marks
from deepgrid.slurm.observe.snapshot import Records, Snapshot, parse_snapshot, snapshot_input
from deepgrid.slurm.ssh.channel import CommandResult
from deepgrid.slurm.ssh.scripts import read_script
from tests.slurm.rows import KEY, OURS, RECORDED


def snapshot(
    *, queue: tuple[Row, ...] = (), spool: tuple[Row, ...] = (), id_: int | None = 42, refused: bool = False
) -> Snapshot:
    ids = {} if id_ is None else {KEY.comment: id_}
    return Snapshot(queue, spool, {KEY.comment: "999"}, ids, frozenset({KEY.comment} if refused else ()))


STRANGERS = {
    "other account": replace(RECORDED, user="998"),
    "other job": replace(RECORDED, name="0x06"),
    "other claim": replace(RECORDED, comment=KEY.comment + "0"),
    "other Slurm id": replace(RECORDED, slurm_id=43),
}


@pytest.mark.parametrize("case", STRANGERS)
def test_a_record_that_differs_in_anything_is_not_ours(case: str) -> None:
    assert snapshot(spool=(STRANGERS[case],)).ended(KEY) is None
    assert snapshot(spool=(RECORDED,)).ended(KEY) is not None


@pytest.mark.parametrize("case", ["other account", "other Slurm id"])
def test_a_row_of_another_id_or_account_is_not_ours(case: str) -> None:
    assert snapshot(queue=(replace(STRANGERS[case], state="RUNNING"),)).queued(KEY) is None
    assert snapshot().records_of(KEY, [STRANGERS[case]]) == Records()


def test_a_claim_whose_id_was_reissued_has_no_job_but_keeps_its_records() -> None:
    reissued = frozenset({KEY.comment})
    running = replace(snapshot(queue=(replace(OURS, state="RUNNING"),)), reissued=reissued)
    assert running.queued(KEY) is None
    assert running.records_of(KEY, [OURS]) == Records()
    assert replace(snapshot(spool=(RECORDED,)), reissued=reissued).ended(KEY) is not None


def test_a_job_with_another_submission_time_has_a_reused_id() -> None:
    found = replace(snapshot(), taken={KEY.comment: 90})
    for taken_at, restarts, is_ours in (
        (90, 0, True),
        (91, 0, False),
        (91, 1, True),
        (89, 0, False),
        (89, 1, False),
        (None, 0, True),
    ):
        row = replace(OURS, taken_at=taken_at, restarts=restarts)
        waiting = replace(row, state="RUNNING", ended_at=None)
        assert (replace(found, queue=(waiting,)).queued(KEY) is not None) is is_ours
        assert (found.records_of(KEY, [row]).end is not None) is is_ours


def test_a_claim_that_was_never_submitted_has_no_job_whatever_has_its_name() -> None:
    nobody = Snapshot((replace(OURS, state="RUNNING"),), (RECORDED,))
    assert nobody.queued(KEY) is None
    assert nobody.ended(KEY) is None
    assert nobody.records_of(KEY, [OURS]) == Records()


def test_the_first_final_record_counts() -> None:
    again = replace(RECORDED, state="FAILED", ended_at=500)
    end = snapshot(spool=(again, RECORDED)).ended(KEY)
    assert end is not None
    assert (end.state, end.ended_at, end.ran_s) == ("COMPLETED", 160, 60)


def test_a_tombstone_shows_that_the_supervisor_stopped_a_job() -> None:
    cancelled = replace(RECORDED, state="CANCELLED")
    by_us = replace(snapshot(spool=(cancelled,)), marks={KEY.comment: Marks(tombstone=True)})
    for end in (by_us.ended(KEY), by_us.records_of(KEY, [cancelled]).end):
        assert end is not None
        assert end.stopped
    finished = replace(by_us, completions=(RECORDED,)).ended(KEY)
    by_somebody = snapshot(spool=(cancelled,)).ended(KEY)
    assert finished is not None
    assert by_somebody is not None
    assert not (finished.stopped or by_somebody.stopped)


def test_a_job_that_was_cancelled_before_its_script_began_never_started() -> None:
    """Slurm counts from the allocation on. Nodes that booted for five minutes cost the customer five minutes."""
    cancelled = replace(RECORDED, state="CANCELLED")
    booting = replace(snapshot(spool=(cancelled,)), marks={KEY.comment: Marks(tombstone=True)})
    for end in (booting.ended(KEY), booting.ended(KEY, {100: 150}), booting.records_of(KEY, [cancelled]).end):
        assert end is not None
        assert (end.stopped, end.began, end.started_at, end.run_s) == (True, False, None, 0)
    began = replace(booting, marks={KEY.comment: Marks(started=True, tombstone=True)}).ended(KEY)
    requeued = replace(booting, completions=(replace(cancelled, restarts=1),)).ended(KEY)
    by_somebody = replace(booting, marks={}).ended(KEY)
    for end in (began, requeued, by_somebody):
        assert end is not None
        assert end.run_s == 60


def test_a_record_without_an_end_is_no_end() -> None:
    for row in (replace(OURS, state="FAILED", ended_at=None), replace(OURS, state="EVAPORATED")):
        assert snapshot().records_of(KEY, [row]) == Records(unfinished=(row,))


def test_a_cancellation_by_a_controller_without_its_state_is_no_end() -> None:
    """It reports all earlier jobs to accounting as cancelled, without naming a user."""
    text = "42|999|CANCELLED|0:0|90|100|160|n1"
    assert snapshot().records_of(KEY, Sacct.parse(text)) == Records()
    by_somebody = snapshot().records_of(KEY, Sacct.parse(text.replace("CANCELLED", "CANCELLED by 999"))).end
    assert by_somebody is not None
    assert by_somebody.state == "CANCELLED"


def test_accounting_is_used_only_with_a_known_id() -> None:
    assert snapshot().records_of(KEY, [OURS]).end is not None
    assert snapshot(id_=None).records_of(KEY, [OURS]) == Records()


def test_the_record_of_a_refused_submission_is_no_run() -> None:
    assert snapshot(spool=(RECORDED,), id_=None, refused=True).ended(KEY) is None
    assert snapshot(spool=(RECORDED,), id_=None).ended(KEY) is not None


def answer(*lines: str) -> CommandResult:
    return CommandResult(0, "".join(f"{line}\n" for line in lines).encode(), b"")


def text(content: str) -> str:
    return base64.b64encode(content.encode()).decode()


def test_a_complete_answer_is_parsed() -> None:
    row = "42|999|RUNNING|100|400|0|5:00|0|90|n1|None|"
    marks = f"marks {text(f'7:90.5 /grid/jobs/{KEY.folder}/run/unstarted')}"
    claim = f"job {KEY.comment} 42 90 submitted 999 7:90.5 {KEY.folder}"
    lines = ("clock 400", "held 7", f"queue 0 {text(row)}", marks, claim, "end")
    found = parse_snapshot(answer(*lines))
    job = found.queued(KEY)
    assert job is not None
    assert (job.phase, job.slurm_id, job.started_at) == (Phase.RUNNING, 42, 100)
    assert found.marks == {KEY.comment: Marks()}
    for other in ("-", "8:90.5", "7:90.6"):
        again = parse_snapshot(answer(*lines[:4], claim.replace("7:90.5", other), "end"))
        assert again.marks == {KEY.comment: Marks(started=True)}, other
    assert (found.clock, found.held) == (400, 7)


def test_a_snapshot_reads_the_marks_of_all_claims_at_once(tmp_path: Path) -> None:
    """With two processes per claim, a snapshot of 500 claims took seconds, which delayed the ends of jobs."""
    keys = [replace(KEY, job_id=number) for number in range(1, 101)]
    folders = [tmp_path / "jobs" / key.folder for key in keys]
    (tmp_path / "spool").mkdir()
    for folder in folders:
        (folder / "run").mkdir(parents=True)
        (folder / "account").write_text("jobs 999\n")
        (folder / "ticket").write_text("1:1.000000000\n")
    (folders[0] / "run" / "unstarted").touch()
    made = subprocess.check_output(["stat", "-c", "%i:%.9Z", str(folders[0] / "run" / "unstarted")], text=True)
    (folders[0] / "ticket").write_text(made)
    (folders[99] / "tombstone").touch()

    counting = tmp_path / "bin" / "stat"
    counting.parent.mkdir()
    counting.write_text(f'#!/bin/sh\necho >> {tmp_path}/calls\nPATH=${{PATH#*:}} exec stat "$@"\n')
    counting.chmod(0o755)

    def looked(some: Sequence[JobKey]) -> tuple[Snapshot, int]:
        (tmp_path / "calls").write_text("")
        argv = ["sh", "-c", read_script("identity.sh", "snapshot.sh"), "look", str(tmp_path), "true"]
        env = {**os.environ, "PATH": f"{counting.parent}:{os.environ['PATH']}"}
        done = subprocess.run(argv, input=snapshot_input(some), capture_output=True, check=True, env=env)
        return parse_snapshot(CommandResult(0, done.stdout, done.stderr)), len((tmp_path / "calls").read_text())

    (_, for_one), (found, for_many) = looked(keys[:1]), looked(keys)
    assert for_many == for_one == 2  # one of them asks whether stat knows an option
    assert found.users == {key.comment: "999" for key in keys}
    assert [key.job_id for key in keys if not found.marks[key.comment].started] == [1]
    assert [key.job_id for key in keys if found.marks[key.comment].tombstone] == [100]


@pytest.mark.parametrize(
    "broken",
    [
        answer(),
        answer(f"queue 0 {text('')}"),
        answer(f"queue 1 {text('Unable to contact slurm controller')}", "end"),
        answer("queue 0 %%%", "end"),
        answer("clock 400", "end"),
    ],
    ids=["nothing", "no end", "Slurm silent", "garbage", "no queue"],
)
def test_an_incomplete_answer_is_an_error(broken: CommandResult) -> None:
    with pytest.raises(SlurmUnreachable):
        parse_snapshot(broken)
