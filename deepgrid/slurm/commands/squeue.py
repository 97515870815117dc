"""`squeue`: the jobs in the controller's memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.slurm.commands.job_row import Row
from deepgrid.slurm.commands.job_states import FINAL, phase_of
from deepgrid.slurm.commands.query import COMMAND_PREFIX, columns, duration_s, limit_minutes, number, seconds
from deepgrid.slurm.commands.versions import exit_of

_FIELDS = "jobid,userid,state,starttime,endtime,exit_code,timelimit,restartcnt,submittime,nodelist,reason"
_LAST_FIELDS = "timeused,preempttime"


@dataclass(frozen=True, slots=True)
class Squeue:
    """The controller's jobs of all accounts and partitions. `ended` adds jobs that ended within MinJobAge."""

    program: ClassVar[str] = "squeue"
    ended: bool = False

    def argv(self) -> list[str]:
        """Return the command line."""
        fields = ",".join(f"{field}:|" for field in f"{_FIELDS},{_LAST_FIELDS}".split(","))
        return [*COMMAND_PREFIX, "squeue", "-h", "-a", *(("-t", "all") if self.ended else ()), "-O", fields]

    @staticmethod
    def parse(text: str) -> list[Row]:
        """Return a row per job."""
        rows = []
        for row in columns(text, 11):
            slurm_id, user, state, start, end, raw, limit, restarts, taken, nodes, tail = row
            waiting_reason, used_s, preempted = _last_columns(tail.removesuffix("|"))
            # Slurm shows forecasts as start and end of jobs that have none yet.
            started_at = seconds(start) if nodes and phase_of(state) is not Phase.QUEUED else None
            ended_at = seconds(end) if state in FINAL else None
            exit_status, exit_reason = exit_of(raw, state)
            shown = exit_reason if state in FINAL else "" if waiting_reason == "None" else waiting_reason
            minutes = None if state in FINAL else limit_minutes(limit)
            ran = Row(int(slurm_id), user, state, started_at, ended_at, exit_status, shown, minutes)
            ran = replace(ran, restarts=number(restarts) or 0, taken_at=seconds(taken), nodes=nodes, used_s=used_s)
            ran = replace(ran, preempted=preempted)
            if started_at is not None and ended_at is not None and used_s is not None:
                ran = replace(ran, suspended_s=max(0, ended_at - started_at - used_s))
            rows.append(ran)
        return rows


def _last_columns(text: str) -> tuple[str, int | None, bool]:
    """Split the last columns: the reason, which may have bars, the time that the job has run, and if it was preempted.

    Without the last one the text is of an older recording.
    """
    before, _, last = text.rpartition("|")
    reason, _, used = before.rpartition("|")
    if (used_s := duration_s(used)) is not None and duration_s(last) is None:
        return reason, used_s, seconds(last) is not None
    used_s = duration_s(last)
    return (text, None, False) if used_s is None else (before, used_s, False)
