"""Attempts of jobs to avoid their bill. A case has a payload, actions around it, and the outcomes allowed.

A payload computes for WORK_S seconds. So a second minute has begun, and two minutes are billed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from deepgrid.lifecycle.job import JobDefinition
from deepgrid.lifecycle.states import JobStatus
from deployments.onemachine.slurm import ClusterSpec
from tests.attacks.attacker import Attacker
from tests.attacks.claims import SMALL_JOB, Claim

WORK_S = 66
CPUS = 64
ONE_MORE_THAN_A_NODE = replace(SMALL_JOB, ntasks=CPUS + 1)
FORGED = "x\n{id}|{uid}|PENDING|N/A|N/A|0|5:00|0||None\n{id} {uid}\n{id}\n{name}|{comment}|{id}\n"

OVER = {JobStatus.FINISHED, JobStatus.FAILED}


SPECS = {
    "all": ClusterSpec("all"),
    "no guard": ClusterSpec("unguarded", guard=False),
    "hook only": ClusterSpec("hooked", guard=False, accounting=False),
    "accounting only": ClusterSpec("accounted", guard=False, hook=False),
    "nothing": ClusterSpec("bare", guard=False, hook=False, accounting=False),
}
SPECS = {name: replace(spec, cpus_per_node=CPUS, mem_per_node_mb=64_000) for name, spec in SPECS.items()}
EVERYWHERE = tuple(SPECS)
RECORDED = ("all", "no guard", "hook only", "accounting only")
ACCOUNTED = ("no guard", "accounting only")
UNGUARDED = ("no guard", "nothing")

Deed = Callable[[Attacker, Claim, int, Claim, int], None]
"""An action from outside: the attacker, its claim and Slurm id, and a neighbour's claim and Slurm id."""


@dataclass(frozen=True)
class Case:
    """One attack. From `least` to `most` minutes must be billed. With `cancelled` the customer requests cancellation.

    The claim's account does `before` before any job starts; another account does `stranger`.
    With `away` no supervisor runs during most of the work, and the next one knows nothing of the previous one.
    """

    attack: str
    body: str
    defence: str
    grounds: tuple[str, ...] = EVERYWHERE
    least: int = 2
    most: int = 3
    minutes: int = 5
    definition: JobDefinition = SMALL_JOB
    statuses: frozenset[JobStatus] = frozenset(OVER)
    before: Deed | None = None
    stranger: Deed | None = None
    cancelled: bool = False
    away: bool = False


def make_mark(attacker: Attacker, own: Claim, own_id: int, other: Claim, other_id: int) -> None:
    attacker.run("rm", "-f", f"{attacker.box.folder(own.key)}/run/unstarted")


def hold_forged_name(attacker: Attacker, own: Claim, own_id: int, other: Claim, other_id: int) -> None:
    """Submit a held job whose name reads like rows of another claim."""
    uid = (attacker.box.folder(own.key) / "account").read_text().split()[1]
    name = FORGED.format(id=own_id, uid=uid, name=own.key.name, comment=own.key.comment)
    attacker.run("sbatch", "-H", f"--job-name={name}", f"--comment={name}", "--wrap=true")
    attacker.run("sbatch", "-H", f"--job-name={own.key.name}", f"--comment={own.key.comment}", "--wrap=true")


def hold_nested(attacker: Attacker, own: Claim, own_id: int, other: Claim, other_id: int) -> None:
    """Submit jobs with the name of the attacker's claim. Their comments contain another job's id and options of
    scancel.
    """
    for more in (str(other_id), "--user=root", f"-u {attacker.name}", f"{own_id} {other_id}"):
        for comment in (f"{own.key.comment}\n{more}", f"{more}\n{own.key.comment}", own.key.comment):
            attacker.run("sbatch", "-H", f"--job-name={own.key.name}", f"--comment={comment}", "--wrap=true")
    attacker.run("sbatch", f"--job-name={own.key.name}", f"--comment={own.key.comment}", "--wrap=exit 125")


IDS, TIMES = "recorded ids and accounts count, never text", "a launch can fail only within a minute of the start"
RUNS = "all segments of a requeued job are billed"
MARK = "the mark of a start never cancels a bill"
LAUNCH = f"sleep {WORK_S}; complete 0x7F0B"
AGAIN = f"sleep {WORK_S}; again"
TWICE = f"touch unstarted; [ ! -e first ] || sleep 30; touch first; sleep {WORK_S}; again"

CASES = {
    "launch": Case("a completion that reads like a failed launch", LAUNCH, TIMES),
    "launch, no mark": Case(
        "a completion that reads like a failed launch, after removing the mark of the start",
        f"touch unstarted; {LAUNCH}", TIMES
    ),
    "launch, away": Case(
        "a completion that reads like a failed launch, while no supervisor runs", f"touch unstarted; {LAUNCH}", TIMES,
        away=True,
    ),
    "no value": Case(
        "a completion without an exit code", f"touch unstarted; sleep {WORK_S}; complete 0xfffffffe",
        "a cancellation without a request counts as a failed run",
    ),
    "success": Case("a completion with exit code 0, and more work after it", f"sleep {WORK_S}; complete 0", RUNS),
    "guard's code": Case(
        "a completion with the exit status of the guard", f"touch unstarted; sleep {WORK_S}; complete 0x7d00", MARK
    ),
    "exit 125": Case(
        "exit with the guard's status after removing the mark of the start",
        f"touch unstarted; sleep {WORK_S}; exit 125", MARK
    ),
    "mark: a pipe": Case(
        "exit with the guard's status after replacing the mark by a named pipe",
        f"mkfifo unstarted; sleep {WORK_S}; exit 125", MARK, UNGUARDED,
    ),
    "mark: an old link": Case(
        "exit with the guard's status after replacing the mark by an old link",
        f"ln -s / unstarted; sleep {WORK_S}; exit 125", MARK, UNGUARDED,
    ),
    "mark: out of sight": Case(
        "exit with the guard's status after closing the folder of the mark",
        f"chmod 000 .; sleep {WORK_S}; exit 125", MARK,
        UNGUARDED,
    ),
    "requeue": Case("scontrol update requeue=1, then scontrol requeue", AGAIN, RUNS),
    "requeue, no mark": Case("a requeue with the mark of the start removed, to run twice", TWICE, RUNS),
    "requeue, away": Case("a requeue while no supervisor runs", TWICE, RUNS, RECORDED, away=True, most=4),
    "requeue, renamed": Case(
        "a new name and comment, then a requeue", f"scontrol update jobid=$ID comment=x name=y; {AGAIN}", IDS,
    ),
    "requeue, renamed, away": Case(
        "a new name and comment, then a requeue, while no supervisor runs",
        f"scontrol update jobid=$ID comment=x name=y; {TWICE}", IDS, ("all", "no guard", "accounting only"),
        away=True, most=4,
    ),
    "renamed, cancelled": Case(
        "a new name and comment, then a cancellation by the customer",
        f"scontrol update jobid=$ID comment=x name=y; sleep {WORK_S + 40}", IDS, UNGUARDED, cancelled=True, minutes=4,
        least=4, most=4, statuses=frozenset({JobStatus.CANCELLED}),
    ),
    "renamed": Case(
        "a new name and comment", f"scontrol update jobid=$ID comment=x name=y; sleep {WORK_S}; exit 3", IDS
    ),
    "accounting's comment": Case(
        "sacctmgr modify job set comment",
        f"sacctmgr -i modify job where jobid=$ID set comment=x; sleep {WORK_S}; "
        "sacctmgr -i modify job where jobid=$ID set comment=y newcomment=z; exit 3",
        IDS, ACCOUNTED,
    ),
    "fewer nodes": Case(
        "scontrol update numnodes=1 shortly before the end",
        f"sleep {WORK_S}; scontrol update jobid=$ID numnodes=1; sleep 2",
        "the earliest start that any source recorded counts", ("all", "no guard", "accounting only", "nothing"),
        definition=ONE_MORE_THAN_A_NODE,
    ),
    "shorter": Case(
        "a lower time limit", "scontrol update jobid=$ID timelimit=1; trap '' TERM; sleep 120",
        "the time that it ran is billed", UNGUARDED, statuses=frozenset({*OVER, JobStatus.OUT_OF_CREDITS}),
    ),
    "scancel": Case(
        "its own scancel, trapped", f"trap '' TERM INT; sleep {WORK_S}; scancel $ID; sleep 9", RUNS, UNGUARDED
    ),
    "a signal": Case("its own scancel -b -s KILL", f"sleep {WORK_S}; scancel -b -s KILL $ID; sleep 9", RUNS, UNGUARDED),
    "cancelled": Case(
        "the customer cancels; the job traps the signal and ends as if it had never started",
        f"trap 'exit 125' TERM; touch unstarted; for i in $(seq {WORK_S + 40}); do sleep 1; done",
        "a tombstone written after the start refuses nothing", ("all", "nothing"),
        cancelled=True, minutes=4, least=4, most=4,
        statuses=frozenset({JobStatus.CANCELLED}),
    ),
    "mark before": Case(
        "another job of the account creates the mark before the start", f"sleep {WORK_S}",
        "only the account itself can create it, so it pays", least=1, most=1, before=make_mark,
        statuses=frozenset({JobStatus.FAILED}),
    ),
    "forged rows": Case(
        "a stranger's held jobs, whose names read like rows of the claim", f"sleep {WORK_S}; exit 3", IDS,
        stranger=hold_forged_name, statuses=frozenset({JobStatus.FAILED}),
    ),
    "nested": Case(
        "jobs with the claim's name and with ids and options in their comments, then a cancellation",
        f"sleep {WORK_S + 40}", IDS, before=hold_nested, cancelled=True, minutes=4, least=4, most=4,
        statuses=frozenset({JobStatus.CANCELLED}),
    ),
    "a twin": Case(
        "a job with the claim's name that ends at once, and one that never ends", f"sleep {WORK_S}; exit 3", IDS,
        UNGUARDED, before=hold_nested, statuses=frozenset({JobStatus.FAILED}),
    ),
}  # fmt: skip
