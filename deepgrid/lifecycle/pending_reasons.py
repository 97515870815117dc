"""Slurm's reasons why a job waits: how long a claim waits with each, and the message for people.

The table has the reasons of Slurm 22.05 to 25.11 (`squeue`, `job_state_reason.c`). Limits of accounts and QOS have
hundreds of words, so a rule reads those. An unknown reason is waited for as for a held job.
`docs/reference/slurm-words.md` is generated from this module.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


class Outlook(Enum):
    """What becomes of a job that waits for a reason."""

    PASSES = "passes by itself"
    MAY_PASS = "passes when the cluster has room"
    HELD = "an administrator must act"
    NEVER = "never passes"


@dataclass(frozen=True, slots=True)
class PendingReason:
    """A reason, or a family of them. `names` are the beginnings of Slurm's texts, which are compared without case.

    `customer` says why the job is given back. `provider` says what the administrator of the cluster can do.
    """

    names: tuple[str, ...]
    outlook: Outlook
    customer: str = ""
    provider: str = ""


@dataclass(frozen=True, slots=True)
class Patience:
    """For how long a claim waits at Slurm before it is given back, in seconds.

    `held_s`: for an administrator, or with an unknown reason. `room_s`: for room in a limit, or for nodes that are
    down. A claim waits without a limit for what passes by itself, and not at all for what never passes.
    """

    held_s: float = 3600.0
    room_s: float = 86400.0

    def with_outlook(self, outlook: Outlook) -> float | None:
        """Return the seconds to wait; None without a limit."""
        waits = {Outlook.NEVER: 0.0, Outlook.HELD: self.held_s, Outlook.MAY_PASS: self.room_s, Outlook.PASSES: None}
        return waits[outlook]


DEFAULT_PATIENCE = Patience()
LAUNCH_FAILURE = "the cluster could not launch the job"
_RAISE = "Raise the limit, or offer less."
_SHARED = "Raise the limit, or take fewer jobs."

REASONS = (
    PendingReason(
        ("Resources", "Priority", "Prolog", "Cleaning", "WaitingForScheduling", "SchedDefer", "Licenses", "BeginTime",
         "BurstBufferResources", "BurstBufferStageIn", "JobArrayTaskLimit", "FedJobLock", "PowerReserved"),
        Outlook.PASSES,
    ),
    PendingReason(
        ("Nodes required for job are DOWN", "ReqNodeNotAvail", "NodeDown", "FrontEndDown", "PowerNotAvail"),
        Outlook.MAY_PASS,
        "the nodes for this job are down, drained or reserved",
        "Return nodes to service (`sinfo -R`), or offer only those that serve.",
    ),
    PendingReason(
        ("PartitionDown", "PartitionInactive"),
        Outlook.MAY_PASS,
        "the cluster's partition is closed",
        "Open the partition: `scontrol update PartitionName=... State=UP`.",
    ),
    PendingReason(
        ("Reservation",),
        Outlook.MAY_PASS,
        "the cluster's reservation has not begun",
        "Check which reservation the site gives to these jobs.",
    ),
    PendingReason(
        ("AssociationJobLimit", "AssociationResourceLimit", "QOSJobLimit", "QOSResourceLimit", "AccountingPolicy"),
        Outlook.MAY_PASS,
        "the cluster's limit for its account is reached",
        _SHARED,
    ),
    PendingReason(
        ("Dependency",),
        Outlook.HELD,
        "the cluster made the job depend on another one",
        "Jobs of the grid have no dependency: check the site's submission rules.",
    ),
    PendingReason(
        ("JobHeldAdmin", "JobHeldUser", "JobHoldMaxRequeue", "job requeued in held state"),
        Outlook.HELD,
        "the cluster holds the job",
        "Release the job (`scontrol release`), and find out what holds it.",
    ),
    PendingReason(
        ("BurstBufferOperation", "burst buffer"),
        Outlook.HELD,
        "the cluster's burst buffer failed",
        "Repair the burst buffer, and release the job.",
    ),
    PendingReason(
        ("SystemFailure", "user env retrieval failed"),
        Outlook.HELD,
        "the cluster failed to prepare the job",
        "Read slurmctld's log.",
    ),
    PendingReason(
        ("launch failed requeued held", "JobLaunchFailure"),
        Outlook.NEVER,
        LAUNCH_FAILURE,
        "Read the logs of slurmd and of the prolog.",
    ),
    PendingReason(
        ("PartitionTimeLimit", "AssociationTimeLimit", "QOSTimeLimit"),
        Outlook.NEVER,
        "the cluster's partition does not allow jobs of that length",
        "Raise the partition's MaxTime, or choose another partition.",
    ),
    PendingReason(
        ("PartitionNodeLimit", "PartitionConfig"),
        Outlook.NEVER,
        "the cluster's partition does not allow jobs of that size",
        "Raise the limits of the partition, or offer fewer nodes.",
    ),
    PendingReason(
        ("MaxMemPerLimit",),
        Outlook.NEVER,
        "the cluster's partition does not allow that much memory",
        "Raise MaxMemPerCPU or MaxMemPerNode of the partition, or offer less memory.",
    ),
    PendingReason(
        ("BadConstraints", "Constraints"),
        Outlook.NEVER,
        "the cluster has no nodes of that kind",
        "Compare the offer with the nodes.",
    ),
    PendingReason(
        ("InvalidAccount", "AccountNotAllowed", "Job's account not permitted"),
        Outlook.NEVER,
        "the cluster's partition does not admit the account of its jobs",
        "Give the account of the jobs an association, and list it in AllowAccounts.",
    ),
    PendingReason(
        ("InvalidQOS", "QOSNotAllowed", "Job's QOS not permitted", "QOSUsageThreshold"),
        Outlook.NEVER,
        "the cluster does not admit the QOS of its jobs",
        "Give the account of the jobs a QOS that the partition allows.",
    ),
    PendingReason(
        ("DependencyNeverSatisfied",),
        Outlook.NEVER,
        "the cluster made the job depend on another one, which failed",
        "Jobs of the grid have no dependency: check the site's submission rules.",
    ),
    PendingReason(
        ("ReservationDeleted", "ReservationInvalid"),
        Outlook.NEVER,
        "the cluster's reservation for this job is gone",
        "Check which reservation the site gives to these jobs.",
    ),
    PendingReason(
        ("TimeLimit", "DeadLine", "InactiveLimit", "NonZeroExitCode", "RaisedSignal", "OutOfMemory"),
        Outlook.NEVER,
        "the cluster ended the job before it could start",
        "These are reasons of ends. Read slurmctld's log.",
    ),
)  # fmt: skip

# A limit of an association (account) or QOS: what it counts, and for whom. Older and newer words differ in details:
# `QOSMaxCpuPerUserLimit`, `AssocGrpCPUMinutesLimit`, `QOSGrpGRES`, `MaxNodePerAccount`.
_LIMIT = re.compile(r"(?P<of>QOS|Assoc)?(?P<kind>Grp|Max|Min)(?P<what>[A-Z]\w*)", re.ASCII)
_BUDGET = re.compile(r"(?<!Run)Minutes(Limit)?$|WallLimit$")
_SHARED_BY = re.compile(r"Per(User|Account)|(?<!Per)Jobs?(Limit)?$")

LIMITS = (
    PendingReason(
        ("QOSMax...PerJob, AssocMax...PerNode, QOSMin...",),
        Outlook.NEVER,
        "the job is beyond a limit of the cluster's account",
        _RAISE,
    ),
    PendingReason(
        ("AssocGrp...Minutes, QOSGrp...Minutes, QOSGrpWall",),
        Outlook.NEVER,
        "the cluster's account has used up its budget",
        "Raise the budget, or leave the grid until it is renewed.",
    ),
    PendingReason(
        ("AssocGrp..., QOSGrp..., QOSMax...PerUser, Max...PerAccount, ...RunMinutes, ...Jobs",),
        Outlook.MAY_PASS,
        "the cluster's limit for its account is reached",
        _SHARED,
    ),
)
_OF_A_JOB, _OF_A_BUDGET, SHARED_LIMIT = LIMITS
UNKNOWN = PendingReason(
    (), Outlook.HELD, "the cluster does not start the job, and its reason is not known", "Look at the job: `squeue`."
)
_BY_NAME = {name.lower(): reason for reason in REASONS for name in reason.names}
_LONGEST_FIRST = sorted(_BY_NAME, key=len, reverse=True)


def pending_reason(text: str) -> PendingReason:
    """Return what Slurm's reason text of a waiting job means; UNKNOWN if this table does not have it.

    Slurm prints a word, a word and details (`ReqNodeNotAvail, UnavailableNodes:n1`), or a sentence.
    """
    bare = text.replace("_", " ").strip().lower()
    if bare in ("", "none"):
        return REASONS[0]
    word = re.split(r"[^a-z]", bare, maxsplit=1)[0]
    if word in _BY_NAME:
        return _BY_NAME[word]
    for name in _LONGEST_FIRST:
        if " " in name and bare.startswith(name):
            return _BY_NAME[name]
    found = _LIMIT.fullmatch(text.strip())
    return UNKNOWN if found is None else _limit(found["kind"], found["what"])


def _limit(kind: str, what: str) -> PendingReason:
    if kind == "Grp":
        return _OF_A_BUDGET if _BUDGET.search(what) else SHARED_LIMIT
    return SHARED_LIMIT if kind == "Max" and _SHARED_BY.search(what) else _OF_A_JOB
