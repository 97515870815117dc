"""Slurm's commands: argument lists out, parsed answers in. Nothing here runs anything.

Parsers never fail on what they do not know: a row that lacks columns is left out, an unknown state is kept
as a word that no phase follows from. Times are asked for as unix seconds (`SLURM_TIME_FORMAT=%s`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from deepgrid.lifecycle.slurm_state import Phase

OUR_COMMENTS = "deepgrid:"
IN_OUR_TIME = ("env", "LC_ALL=C", "TZ=UTC", "SLURM_TIME_FORMAT=%s", "timeout", "-k", "5", "20")

# Complaints of a Slurm that cannot be asked just now, as an extended regular expression.
SILENCE = (
    "[Uu]nable to (contact|connect)|[Tt]imed out|[Tt]imeout|[Cc]onnection (refused|failure)|[Zz]ero [Bb]ytes|"
    "[Tt]ry again|[Tt]emporarily un|standby mode|[Cc]redential|[Tt]ransport endpoint|[Cc]ommunication|[Mm]unge|"
    "missing socket|[Mm]essage (receive|send|length)|[Cc]onnection reset|[Bb]roken pipe|[Nn]o route|[Nn]etwork is"
)

_QUEUED = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
_RUNNING = {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT"}
# In the order of Slurm's numbers, which completion records use.
_BY_NUMBER = (
    "PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED",
    "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY",
)  # fmt: skip
FINAL = frozenset({*_BY_NUMBER[3:], "REVOKED"})
# A run that ended because the job was queued again, by its owner or an administrator; such a record has an end.
REQUEUED = "REQUEUED"
_REQUEUE_FLAG = 0x400
# After such a record the job can have another one. NODE_FAIL is not among them: accounting gives it to all jobs of a
# controller that lost its state, and the runs that do follow it have completion records.
_GOES_ON = {REQUEUED, "RESIZING", "BOOT_FAIL", "PREEMPTED"}
# Reason of a record that ends a job which a controller without its state has forgotten.
FORGOTTEN = "forgotten"


def phase_of(state: str) -> Phase:
    """Where a job in Slurm's `state` stands; UNKNOWN for words that this code has never heard of."""
    if state in _QUEUED:
        return Phase.QUEUED
    if state in _RUNNING:
        return Phase.RUNNING
    return Phase.ENDED if state in FINAL else Phase.UNKNOWN


def is_known(state: str) -> bool:
    """Whether Slurm's `state` means something to this code."""
    return phase_of(state) is not Phase.UNKNOWN


def wait_status(code: int, signal: int) -> int:
    """Exit code 3 -> 768, signal 9 -> 9: what the chain calls an exit status."""
    return signal if signal else code << 8


@dataclass(frozen=True, slots=True)
class Row:
    """One job, or one run of it, as one source shows it. `slurm_id` and `user`, the account's numeric id, say whose.

    Times are unix seconds or None; `started_at` is None for a job that never started. `taken_at` is when Slurm took the
    job, or queued it again; `restarts` counts how often it did that before this run. `follows` tells that an earlier
    record of accounting shows why this one was taken later: the job was queued again or resized. Only completion
    records hold `name` and `comment`, as their hook keeps each on a line of its own; queue and accounting are never
    asked for text that a user can choose.
    """

    slurm_id: int
    user: str
    state: str
    started_at: int | None = None
    ended_at: int | None = None
    exit_status: int = 0
    reason: str = ""
    limit_minutes: int | None = None
    restarts: int = 0
    taken_at: int | None = None
    follows: bool = False
    name: str = ""
    comment: str = ""

    def may_be_of(self, taken_at: int | None) -> bool:
        """Whether this can be the job of its id that Slurm took at `taken_at`.

        A controller that lost its state gives ids out again, and one with an old state still shows who had them before.
        """
        if taken_at is None or self.taken_at is None or self.taken_at == taken_at:
            return True
        return self.taken_at > taken_at and (self.restarts > 0 or self.follows)


class Squeue:
    """The controller's jobs of all accounts and partitions; with `ended`, also those that ended within MinJobAge."""

    FIELDS = (
        "jobid", "userid", "state", "starttime", "endtime", "exit_code", "timelimit", "restartcnt",
        "submittime", "nodelist", "reason",
    )  # fmt: skip

    @classmethod
    def argv(cls, *, ended: bool = False) -> list[str]:
        columns = ",".join(f"{field}:|" for field in cls.FIELDS)
        return [*IN_OUR_TIME, "squeue", "-h", "-a", *(("-t", "all") if ended else ()), "-O", columns]

    @classmethod
    def parse(cls, text: str) -> list[Row]:
        rows = []
        for row in columns(text, len(cls.FIELDS)):
            slurm_id, user, state, start, end, raw, limit, restarts, taken, nodes, reason = row
            started_at = _seconds(start) if nodes and phase_of(state) is not Phase.QUEUED else None  # else a forecast
            ended_at = _seconds(end) if state in FINAL else None  # else it is a forecast
            exit_status, death = _death(_number(raw) or 0)
            said = reason.removesuffix("|")
            why = death if state in FINAL else "" if said == "None" else said
            rows.append(Row(
                int(slurm_id), user, state, started_at, ended_at, exit_status, why,
                None if state in FINAL else limit_minutes(limit), _number(restarts) or 0, _seconds(taken),
            ))  # fmt: skip
        return rows


class Sacct:
    """Accounting of all accounts, every record of each job: Slurm reuses ids, and jobs can run twice.

    The comment is not asked for: a job's account may change it there at any time (`sacctmgr modify job`).
    """

    FIELDS = "JobIDRaw,UID,State,ExitCode,Submit,Start,End,NodeList"
    DISABLED = "storage is disabled"

    @classmethod
    def argv(cls, names: Sequence[str], since: int, until: int | None = None, *, ids: Sequence[int] = ()) -> list[str]:
        """Of jobs of these names or ids, or of all without any, that were there in the time given in unix seconds."""
        options = ["-S", _utc(since), *(("-E", _utc(until)) if until is not None else ())]
        options += ["--name", ",".join(names)] if names else []
        options += ["-j", ",".join(map(str, ids))] if ids else []
        return [*IN_OUR_TIME, "sacct", "-n", "-P", "-X", "-a", "-D", *options, "-o", cls.FIELDS]

    @staticmethod
    def parse(text: str) -> list[Row]:
        rows = []
        for slurm_id, user, state, code, taken, start, end, nodes in columns(text, 8):
            # Whoever cancels is named, "CANCELLED by 0"; without a name the controller had lost the job.
            reason = FORGOTTEN if state == "CANCELLED" else ""
            state = state.split()[0] if state else ""
            started_at = None if nodes in ("", "None assigned") else _seconds(start)
            exit_status = wait_status(*_pair(code))
            ended_at, taken_at = _seconds(end), _seconds(taken)
            rows.append(Row(
                int(slurm_id), user, state, started_at, ended_at, exit_status, reason, taken_at=taken_at,
            ))  # fmt: skip
        first: dict[tuple[int, str], int] = {}  # by id and account, the earliest record that can have a successor
        for row in rows:
            if row.state in _GOES_ON and row.taken_at is not None:
                key = row.slurm_id, row.user
                first[key] = min(row.taken_at, first.get(key, row.taken_at))
        return [replace(row, follows=True) if _is_later(row, first) else row for row in rows]


class Completions:
    """Records of the completion hook: `key=value` lines, an empty line after each record."""

    @staticmethod
    def parse(text: str) -> list[Row]:
        rows = []
        for block in text.split("\n\n"):
            field: dict[str, str] = {}
            for line in block.split("\n"):
                key, _, value = line.partition("=")
                field.setdefault(key, value)
            number, state, raw = (_number(field.get(k)) for k in ("job_id", "job_state", "exit_code"))
            if number is None or state is None:
                continue
            exit_status, reason = _death(raw or 0)
            started = field.get("nodes", "") not in ("", "nil", "(null)", "None assigned")
            rows.append(Row(
                number, field.get("user_id", ""), _state(state),
                _seconds(field.get("start_time", "")) if started else None, _seconds(field.get("end_time", "")),
                exit_status, reason, restarts=_number(field.get("restart_cnt")) or 0,
                name=field.get("name", ""), comment=field.get("comment", ""),
            ))  # fmt: skip
        return rows


def limit_minutes(text: str) -> int | None:
    """Minutes in Slurm's form of a time limit: `5:00`, `1:05:00`, `2-01:05:00`; None for words such as `UNLIMITED`."""
    found = re.fullmatch(r"(?:(?:([0-9]{1,9})-)?([0-9]{1,9}):)?([0-9]{1,9}):[0-9]{2}", text)
    if not found:
        return None
    days, hours, minutes = (int(part or 0) for part in found.groups())
    return (days * 24 + hours) * 60 + minutes


def first_complaint(text: str) -> str:
    """The first line that Slurm said, without the command's name before it."""
    for line in text.splitlines():
        if bare := re.sub(r"^(\w+: )?((error|fatal): )?(allocation failure: )?", "", line.strip()):
            return bare
    return ""


def is_silence(complaint: str) -> bool:
    """Whether Slurm could not be asked, rather than said no."""
    return re.search(SILENCE, complaint) is not None


def columns(text: str, count: int, *, numeric: bool = True) -> Iterator[list[str]]:
    """Rows of `count` columns; with `numeric`, only those that begin with the ids of a job and of an account."""
    for line in text.split("\n"):
        row = [column.strip() for column in line.split("|", count - 1)]
        if len(row) == count and (not numeric or (is_id(row[0]) and is_id(row[1]))):
            yield row


def is_id(text: str) -> bool:
    """Whether this is the id of a job or an account, and nothing else."""
    return re.fullmatch(r"[0-9]{1,10}", text) is not None


def _is_later(row: Row, first: Mapping[tuple[int, str], int]) -> bool:
    """Whether Slurm took this row's job after that of the same id and account in `first`."""
    since = first.get((row.slurm_id, row.user))
    return since is not None and row.taken_at is not None and row.taken_at > since


def _state(number: int) -> str:
    """Slurm's word for the number in a completion record; its upper bits are flags: completing, resizing ..."""
    base = number & 0xFF
    if base == 0 and number & _REQUEUE_FLAG:
        return REQUEUED
    return _BY_NUMBER[base] if base < len(_BY_NUMBER) else f"STATE_{base}"


def _death(raw: int) -> tuple[int, str]:
    """Exit status and reason of Slurm's own figure; its reason text blames the launch for any signal."""
    code, signal = raw >> 8 & 0xFF, raw & 0x7F
    # A process has one or the other; with both, it is an error number of Slurm's own.
    return wait_status(code, signal), "JobLaunchFailure" if code and signal else ""


def _pair(text: str) -> tuple[int, int]:
    """Exit code and signal of `3:0`; zeros when it is something else."""
    code, _, signal = text.partition(":")
    return _number(code) or 0, _number(signal) or 0


def _number(text: str | None) -> int | None:
    try:
        return int(float(text or ""))
    except (ValueError, OverflowError):  # such as "inf"
        return None


def _utc(seconds: int) -> str:
    """A moment as Slurm takes it under TZ=UTC."""
    return f"{datetime.fromtimestamp(seconds, UTC):%FT%T}"


def _seconds(text: str) -> int | None:
    """Unix seconds, or None for `Unknown`, `None`, `N/A` and 0."""
    return _number(text) or None
