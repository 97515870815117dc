"""What came of measuring a cluster, and what its labels become."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deepgrid.benchmark.labels import is_measured, value_moved
from deepgrid.benchmark.settings import Program
from deepgrid.lifecycle.job import Label

_PREFIXES: dict[Program, tuple[str, ...]] = {
    "machine": ("cpu", "os", "arch", "gpu"),
    "hpl": ("compute.",),
    "network": ("network.p2p.", "network.all-to-all."),
    "storage": ("storage.",),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one program measured; `problem` says why it has no value, or not all of them."""

    program: Program
    labels: tuple[Label, ...] = ()
    problem: str = ""

    @property
    def words(self) -> str:
        """Why it failed, and what that means."""
        return f"{self.program} failed ({self.problem.rstrip('.')}); its last values stay" if self.problem else ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A label before and after, empty where there was or is none."""

    key: str
    old: str
    new: str

    @property
    def moved(self) -> bool:
        return value_moved(self.old, self.new)


def updated(last: tuple[Label, ...], outcomes: Sequence[Outcome], own: tuple[Label, ...] = ()) -> tuple[Label, ...]:
    """The measured labels after these outcomes: what failed or was not measured keeps its last value.

    Without those that stand among the provider's `own` labels, which win.
    """
    values = {label.key: label.value for label in last if is_measured(label.key)}
    for outcome in outcomes:
        if not outcome.problem:  # what it no longer reports, such as a GPU that was taken out, is gone
            values = {key: value for key, value in values.items() if not key.startswith(_PREFIXES[outcome.program])}
        values |= {label.key: label.value for label in outcome.labels}
    return tuple(Label(key, values[key]) for key in sorted(values.keys() - {label.key for label in own}))


def compared(old: tuple[Label, ...], new: tuple[Label, ...]) -> tuple[Comparison, ...]:
    """Both sides by key."""
    before, after = ({label.key: label.value for label in labels} for labels in (old, new))
    keys = sorted(before.keys() | after.keys())
    return tuple(Comparison(key, before.get(key, ""), after.get(key, "")) for key in keys)


def nothing_worked(outcomes: Sequence[Outcome]) -> bool:
    """Whether programs failed and none measured anything."""
    return any(outcome.problem for outcome in outcomes) and not any(outcome.labels for outcome in outcomes)


def summary(rows: Sequence[Comparison], outcomes: Sequence[Outcome], standing: str) -> str:
    """What moved and what failed, in a sentence; `standing` says how the provider stands if it proposed that."""
    moved = [f"{row.key} {row.old or 'none'} -> {row.new or 'none'}" for row in rows if row.moved]
    said = [f"proposed {', '.join(moved)}; the provider {standing}"] if standing else ["nothing moved by more than 5 %"]
    words = "; ".join(said + [outcome.words for outcome in outcomes if outcome.problem])
    return f"{words[0].upper()}{words[1:]}."
