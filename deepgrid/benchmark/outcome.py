"""The results of measuring a cluster, and the labels that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from deepgrid.benchmark.figures import Samples
from deepgrid.benchmark.labels import has_value_moved, is_measured, values_of
from deepgrid.benchmark.settings import Program
from deepgrid.lifecycle.feature_labels import FEATURES
from deepgrid.lifecycle.job import Label

MOVES_SHOWN = 3  # in the message of a run
PROBLEM_CHARACTERS = 400  # of a failure there

_PREFIXES: dict[Program, tuple[str, ...]] = {
    "machine": ("cpu", "os", "arch", "gpu"),
    "hpl": ("compute.",),
    "network": ("network.p2p.", "network.all-to-all.", "network.benchmark", "network.remark"),
    "storage": ("storage.",),
    "internet": ("network.upload.", "network.download.", "network.internet."),
}


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a measurement rests on: samples by label key, parameters and versions by name, and the program's output."""

    samples: Mapping[str, Samples] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    output: str = field(default="", repr=False)
    noisy: tuple[str, ...] = ()  # keys of figures whose samples differ too much
    is_partial: bool = False  # some nodes of the partition did not take part

    @property
    def remark(self) -> str:
        """What a reader of the labels must know; empty if there is nothing."""
        return "-".join(["noisy"] * bool(self.noisy) + ["partial"] * self.is_partial)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The labels that one program measured. `problem` says why values are missing."""

    program: Program
    labels: tuple[Label, ...] = ()
    problem: str = ""
    evidence: Evidence = Evidence()

    def words(self, last: str = "") -> str:
        """Return the failure and its consequence. `last` is the day of the last values."""
        which = f"its last values of {last} stay" if last else "its last values stay"
        problem = " ".join(self.problem.split()).replace(". ", "; ")[:PROBLEM_CHARACTERS].rstrip(".")
        return f"{self.program} failed ({problem}); {which}" if problem else ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A label before and after; empty where it is missing."""

    key: str
    old: str
    new: str

    @property
    def moved(self) -> bool:
        return has_value_moved(self.old, self.new)


def update_labels(
    last: tuple[Label, ...], outcomes: Sequence[Outcome], own: tuple[Label, ...] = ()
) -> tuple[Label, ...]:
    """Return the measured labels after these outcomes. Labels that were not measured keep their last values.

    The provider's `own` labels win: measured labels with the same keys are left out.
    """
    values = {label.key: label.value for label in last if is_measured(label.key)}
    for outcome in outcomes:
        if not outcome.problem:  # a success drops labels that it no longer reports, such as the label of a removed GPU
            prefixes = _PREFIXES[outcome.program]
            values = {key: one for key, one in values.items() if key in FEATURES or not key.startswith(prefixes)}
        values |= {label.key: label.value for label in outcome.labels}
    return tuple(Label(key, values[key]) for key in sorted(values.keys() - {label.key for label in own}))


def comparisons(old: tuple[Label, ...], new: tuple[Label, ...]) -> tuple[Comparison, ...]:
    """Return old and new values by key."""
    before, after = values_of(old), values_of(new)
    keys = sorted(before.keys() | after.keys())
    return tuple(Comparison(key, before.get(key, ""), after.get(key, "")) for key in keys)


def nothing_worked(outcomes: Sequence[Outcome]) -> bool:
    """Return whether a program failed and none measured a label."""
    return any(outcome.problem for outcome in outcomes) and not any(outcome.labels for outcome in outcomes)


def summary(
    rows: Sequence[Comparison],
    outcomes: Sequence[Outcome],
    standing: str,
    degraded: str = "",
    last_days: Mapping[Program, str] = MappingProxyType({}),
) -> str:
    """Return one sentence on changes, noise, a drop and failures. The table has the rest.

    `standing` is the provider's standing after the changes were proposed. `degraded` says what dropped. `last_days` are
    the days of the last values of programs that failed.
    """
    moved = [f"{row.key} {row.old or 'none'} -> {row.new or 'none'}" for row in rows if row.moved]
    shown = ", ".join(moved[:MOVES_SHOWN])
    if len(moved) > MOVES_SHOWN:
        shown += f" and {len(moved) - MOVES_SHOWN} more"
    said = [f"proposed {shown}; the provider {standing}"] if standing else ["nothing moved by more than 5 %"]
    said += [f"{one.program} is noisy" for one in outcomes if one.evidence.noisy]
    said += [f"the cluster is degraded: {degraded}"] * bool(degraded)
    said += [one.words(last_days.get(one.program, "")) for one in outcomes if one.problem]
    words = "; ".join(said)
    return f"{words[0].upper()}{words[1:]}."
