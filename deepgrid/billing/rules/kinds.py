"""The names of differences, how serious each is, and the finding that says so about one claim."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How serious a difference is. A hint fails no run."""

    CRITICAL = "critical"  # credits went where nothing justifies it
    MAJOR = "major"  # a bill or a run is not as it was sold
    MINOR = "minor"  # records disagree, and no credits are affected
    HINT = "hint"  # a pattern that a person should look at


class Kind(StrEnum):
    """The names of differences."""

    MINUTES = "minutes"
    MORE_THAN_BOUGHT = "more than bought"
    FAULT_BILLED = "fault of the site billed"
    A_MINUTE_TOO_MUCH = "a minute too much"
    LATE_ENDS = "ends just after a minute began"
    NO_RUN = "settled without a run"
    RAN_TWICE = "ran twice"
    RAN_ON = "ran on after its settlement"
    STILL_RUNNING = "still running after its settlement"
    NEVER_SETTLED = "never settled"
    NOT_IN_SLURM = "running without a run"
    RETURNED_RAN = "ran though given back"
    NOT_ON_CHAIN = "unknown to the chain"
    RAN_EARLY = "ran before its claim"
    SHARED_RUN = "one run for two claims"
    ANOTHER_END = "another end"
    ANOTHER_EXIT = "another exit status"
    FEWER_CPUS = "fewer CPUs"
    FEWER_NODES = "fewer nodes"
    FEWER_GPUS = "fewer GPUs"
    LESS_MEMORY = "less memory"
    SETTLED_TWICE = "settled twice"
    DEPOSIT = "deposit mismatch"
    DIVISION = "division mismatch"
    TERMS = "terms mismatch"
    TRANSFERS = "transfer mismatch"
    REFUND = "refund mismatch"


_CRITICAL = {
    Kind.MORE_THAN_BOUGHT,
    Kind.A_MINUTE_TOO_MUCH,
    Kind.NO_RUN,
    Kind.SHARED_RUN,
    Kind.SETTLED_TWICE,
    Kind.DEPOSIT,
    Kind.DIVISION,
    Kind.TERMS,
    Kind.TRANSFERS,
    Kind.REFUND,
}
_MINOR = {Kind.ANOTHER_EXIT}
_HINTS = {Kind.LATE_ENDS}


def severity_of(kind: Kind) -> Severity:
    """Return how serious differences of this kind are."""
    if kind in _CRITICAL:
        return Severity.CRITICAL
    if kind in _MINOR:
        return Severity.MINOR
    return Severity.HINT if kind in _HINTS else Severity.MAJOR


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding on one claim: a difference if it has a `kind`, otherwise a note.

    `wei` is the amount at stake: what was billed, paid or not billed without a reason. It is 0 where no credits are
    affected.
    """

    job_id: int
    claimed_at: int
    kind: Kind | None
    evidence: str
    tx: str = ""
    wei: int = 0

    @property
    def severity(self) -> Severity:
        return Severity.HINT if self.kind is None else severity_of(self.kind)
