"""Builds the argument lists of Slurm's commands and parses their outputs. Nothing here runs a command.

Parsers never fail on unknown text. They drop a row that lacks columns, and they keep an unknown state as it is; its
phase is UNKNOWN. All times are unix seconds (`SLURM_TIME_FORMAT=%s`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from deepgrid.lifecycle.job import Hardware
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.slurm.observe.exit_codes import accounted_exit, exit_of

COMMAND_PREFIX = ("env", "LC_ALL=C", "TZ=UTC", "SLURM_TIME_FORMAT=%s", "timeout", "-k", "5", "20")

# Error messages of an outage of Slurm, as an extended regular expression.
OUTAGE_MESSAGES = (
    "[Uu]nable to (contact|connect)|[Tt]imed out|[Tt]imeout|[Cc]onnection (refused|failure)|[Zz]ero [Bb]ytes|"
    "[Tt]ry again|[Tt]emporarily un|standby mode|[Cc]redential|[Tt]ransport endpoint|[Cc]ommunication|[Mm]unge|"
    "missing socket|[Mm]essage (receive|send|length)|[Cc]onnection reset|[Bb]roken pipe|[Nn]o route|[Nn]etwork is"
)

_QUEUED = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
_RUNNING = {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT"}
# In the order of Slurm's state numbers, which completion records contain.
_BY_NUMBER = (
    "PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED",
    "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY",
)  # fmt: skip
FINAL = frozenset({*_BY_NUMBER[3:], "REVOKED"})
# A run that ended because its owner or an administrator requeued the job. Such a record has an end.
REQUEUED = "REQUEUED"
_REQUEUE_FLAG = 0x400
# After a record of such a state the job can have another record. NODE_FAIL is not listed: when a controller loses its
# state, accounting marks all its jobs so. Runs that do follow a NODE_FAIL have completion records.
_CAN_CONTINUE = {REQUEUED, "RESIZING", "BOOT_FAIL", "PREEMPTED"}
# Reason of an accounting record that only closes a job whose controller lost its state.
FORGOTTEN_REASON = "forgotten"


def phase_of(state: str) -> Phase:
    """Return the phase of a job in Slurm's `state`; UNKNOWN for a state that this code does not know."""
    if state in _QUEUED:
        return Phase.QUEUED
    if state in _RUNNING:
        return Phase.RUNNING
    return Phase.ENDED if state in FINAL else Phase.UNKNOWN


@dataclass(frozen=True, slots=True)
class Row:
    """One job, or one run of it, as one source shows it.

    `slurm_id` and `user` (the numeric id of the account) identify the job's owner. Times are unix seconds or None.
    `started_at` is None for a job that never started. `taken_at` is when Slurm accepted or requeued the job, and
    `restarts` counts the requeues before this run. `follows` is True if an earlier accounting record explains a later
    `taken_at`: the job was requeued or resized. Only completion records contain `name` and `comment`, as their hook
    writes each on its own line. Queue and accounting are never queried for text that a user can choose.
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
    nodes: str = ""

    def may_be_of(self, taken_at: int | None) -> bool:
        """Return whether this can be the job with this id that Slurm accepted at `taken_at`.

        A controller that lost its state reuses ids. A controller with an old state still shows the former jobs.
        """
        if taken_at is None or self.taken_at is None or self.taken_at == taken_at:
            return True
        return self.taken_at > taken_at and (self.restarts > 0 or self.follows)


class Squeue:
    """The controller's jobs of all accounts and partitions; with `ended`, also jobs that ended within MinJobAge."""

    FIELDS = "jobid,userid,state,starttime,endtime,exit_code,timelimit,restartcnt,submittime,nodelist,reason"

    @classmethod
    def argv(cls, *, ended: bool = False) -> list[str]:
        columns = ",".join(f"{field}:|" for field in cls.FIELDS.split(","))
        return [*COMMAND_PREFIX, "squeue", "-h", "-a", *(("-t", "all") if ended else ()), "-O", columns]

    @staticmethod
    def parse(text: str) -> list[Row]:
        rows = []
        for row in columns(text, 11):
            slurm_id, user, state, start, end, raw, limit, restarts, taken, nodes, reason = row
            # Slurm shows forecasts as start and end of jobs that have none yet.
            started_at = _seconds(start) if nodes and phase_of(state) is not Phase.QUEUED else None
            ended_at = _seconds(end) if state in FINAL else None
            exit_status, exit_reason = exit_of(raw, state)
            waiting_reason = reason.removesuffix("|")
            shown = exit_reason if state in FINAL else "" if waiting_reason == "None" else waiting_reason
            minutes = None if state in FINAL else limit_minutes(limit)
            ran = Row(int(slurm_id), user, state, started_at, ended_at, exit_status, shown, minutes)
            rows.append(replace(ran, restarts=_number(restarts) or 0, taken_at=_seconds(taken), nodes=nodes))
        return rows


class Sacct:
    """Accounting of all accounts, with every record of each job: Slurm reuses ids, and jobs can run twice.

    The comment is not queried: a job's account can change it in accounting at any time (`sacctmgr modify job`).
    """

    FIELDS = "JobIDRaw,UID,State,ExitCode,Submit,Start,End,NodeList"
    DISABLED = "storage is disabled"

    @classmethod
    def argv(cls, names: Sequence[str], since: int, until: int | None = None, *, ids: Sequence[int] = ()) -> list[str]:
        """Return the command for jobs that existed in this period (unix seconds), with these names or ids, or all."""
        options = ["-S", _utc(since), *(("-E", _utc(until)) if until is not None else ())]
        options += ["--name", ",".join(names)] if names else []
        options += ["-j", ",".join(map(str, ids))] if ids else []
        return [*COMMAND_PREFIX, "sacct", "-n", "-P", "-X", "-a", "-D", *options, "-o", cls.FIELDS]

    @staticmethod
    def parse(text: str) -> list[Row]:
        rows = []
        for slurm_id, user, state, code, taken, start, end, nodes in columns(text, 8):
            # Slurm names the user who cancelled ("CANCELLED by 0"). Without a user, the controller had lost the job.
            reason = FORGOTTEN_REASON if state == "CANCELLED" else ""
            state = state.split()[0] if state else ""
            started_at = None if nodes in ("", "None assigned") else _seconds(start)
            ended_at, taken_at, status = _seconds(end), _seconds(taken), accounted_exit(code, state)
            ran = Row(int(slurm_id), user, state, started_at, ended_at, status, reason, taken_at=taken_at)
            rows.append(replace(ran, nodes="" if started_at is None else nodes))
        first: dict[tuple[int, str], int] = {}  # by id and account: the earliest record that can have a successor
        for row in rows:
            if row.state in _CAN_CONTINUE and row.taken_at is not None:
                key = row.slurm_id, row.user
                first[key] = min(row.taken_at, first.get(key, row.taken_at))
        return [replace(row, follows=True) if _is_later(row, first) else row for row in rows]


class Completions:
    """Records of the completion hook: `key=value` lines, with an empty line after each record."""

    @staticmethod
    def parse(text: str) -> list[Row]:
        rows = []
        for block in text.split("\n\n"):
            field: dict[str, str] = defaultdict(str)
            for line in block.split("\n"):
                key, _, value = line.partition("=")
                field.setdefault(key, value)
            number, state_number = _number(field["job_id"]), _number(field["job_state"])
            if number is None or state_number is None:
                continue
            state = _state(state_number)
            exit_status, reason = exit_of(field["exit_code"], state)
            started = field["nodes"] not in ("", "nil", "(null)", "None assigned")
            started_at, ended_at = _seconds(field["start_time"]) if started else None, _seconds(field["end_time"])
            ran = Row(number, field["user_id"], state, started_at, ended_at, exit_status, reason)
            restarts = _number(field["restart_cnt"]) or 0
            nodes = field["nodes"] if started else ""
            rows.append(replace(ran, restarts=restarts, name=field["name"], comment=field["comment"], nodes=nodes))
        return rows


def limit_minutes(text: str) -> int | None:
    """Return the minutes of Slurm's time limit: `5:00`, `1:05:00`, `2-01:05:00`; None for a word like `UNLIMITED`."""
    found = re.fullmatch(r"(?:(?:([0-9]{1,9})-)?([0-9]{1,9}):)?([0-9]{1,9}):[0-9]{2}", text)
    if not found:
        return None
    days, hours, minutes = (int(part or 0) for part in found.groups())
    return (days * 24 + hours) * 60 + minutes


def first_complaint(text: str) -> str:
    """Return the first line of Slurm's message, without the command's name before it."""
    for line in text.splitlines():
        if bare := re.sub(r"^(\w+: )?((error|fatal): )?(allocation failure: )?", "", line.strip()):
            return bare
    return ""


def is_outage(complaint: str) -> bool:
    """Return whether this message means that Slurm is down. Otherwise Slurm refused the request."""
    return re.search(OUTAGE_MESSAGES, complaint) is not None


def columns(text: str, count: int, *, numeric: bool = True) -> Iterator[list[str]]:
    """Yield the rows of `count` columns; with `numeric`, only rows that begin with the ids of a job and an account."""
    for line in text.split("\n"):
        row = [column.strip() for column in line.split("|", count - 1)]
        if len(row) == count and (not numeric or (is_id(row[0]) and is_id(row[1]))):
            yield row


def is_id(text: str) -> bool:
    """Return whether the text is the id of a job or an account, and nothing else."""
    return re.fullmatch(r"[0-9]{1,10}", text) is not None


def _is_later(row: Row, first: Mapping[tuple[int, str], int]) -> bool:
    """Return whether Slurm accepted this row's job after the job of the same id and account in `first`."""
    since = first.get((row.slurm_id, row.user))
    return since is not None and row.taken_at is not None and row.taken_at > since


def _state(number: int) -> str:
    """Slurm's name for the state number in a completion record. The upper bits are flags: completing, resizing, ..."""
    base = number & 0xFF
    if base == 0 and number & _REQUEUE_FLAG:
        return REQUEUED
    return _BY_NUMBER[base] if base < len(_BY_NUMBER) else f"STATE_{base}"


def _number(text: str) -> int | None:
    try:
        return int(float(text))
    except (ValueError, OverflowError):  # such as "inf"
        return None


def _utc(seconds: int) -> str:
    """Return a time in the form that Slurm reads under TZ=UTC."""
    return f"{datetime.fromtimestamp(seconds, UTC):%FT%T}"


def _seconds(text: str) -> int | None:
    """Unix seconds, or None for `Unknown`, `None`, `N/A` and 0."""
    return _number(text) or None


_TAKES_NO_JOBS = ("down", "drain", "fail", "error", "inval", "maint", "unknown")  # beginnings of the states of nodes


class Sinfo:
    """The partition's nodes."""

    @staticmethod
    def argv(partition: str) -> list[str]:
        return [*COMMAND_PREFIX, "sinfo", "-h", "-N", "-p", partition, "-o", "%N|%c|%m|%G|%T|%a"]

    @staticmethod
    def parse(text: str, *, usable_only: bool = True) -> Hardware:
        """Return one figure per node, ordered by node name. `usable_only` omits nodes that take no jobs now.

        These are drained, down or failing, or they do not respond (`*`).
        """
        nodes = {}
        for name, cpus, memory, gres, state, _ in columns(text, 6, numeric=False):
            if is_id(cpus) and not (usable_only and ("*" in state or state.startswith(_TAKES_NO_JOBS))):
                nodes[_natural(name)] = (count_gpus(gres), int(cpus), memory_mb(memory))
        figures = [nodes[name] for name in sorted(nodes)]
        gpus, cpus_each, memories = zip(*figures, strict=True) if figures else ((), (), ())
        return Hardware(gpus, cpus_each, memories)

    @staticmethod
    def is_up(text: str) -> bool:
        """Return whether the partition takes jobs."""
        return any(row[5] == "up" for row in columns(text, 6, numeric=False))


def count_gpus(gres: str) -> int:
    """Return GPUs in a node's `Gres`: `gpu:a100:4(S:0-1),gpu:2` -> 6."""
    bare = re.sub(r"\([^)]*\)", "", gres)
    counts = [re.fullmatch(r"gpu(?::[^:]+)??(?::([0-9]{1,6}))?", item.strip()) for item in bare.split(",")]
    return sum(int(found[1] or 1) for found in counts if found)


def memory_mb(text: str) -> int:
    """Slurm's memory figure in MB: `64000`, `64000M`, `62.50G`, `1T`, `8000+`; 0 for any other text."""
    found = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)([KMGTP]?)\+?", text.strip())
    if not found:
        return 0
    scale = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}[found[2]]
    return int(float(found[1]) * scale)


def _natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """Return a sort key that puts `n2` before `n10`."""
    parts = re.split(r"([0-9]{1,18})", name)  # every second part is a number
    return tuple((0, int(part)) if place % 2 else (1, part) for place, part in enumerate(parts) if part)
