"""Recognises changes of providers that only update measured labels. Pure.

Such a change may be approved automatically. A person approves all other changes: prices, hardware, labels
that are not measured, and measured labels that deepgrid's own measurements never write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deepgrid.benchmark.labels import is_measured, normalise
from deepgrid.lifecycle.job import Label, Provider


@dataclass(frozen=True, slots=True)
class Proposal:
    """A provider's proposal, and the approved version (None before the first approval)."""

    proposed: Provider
    approved: Provider | None

    @property
    def address(self) -> str:
        return self.proposed.address

    @property
    def name(self) -> str:
        """The approved name, or the proposed one."""
        return (self.approved or self.proposed).name

    @property
    def concern(self) -> str:
        """Why a person must decide; empty when only measured labels change."""
        if self.approved is None:
            return "it is new"
        if self.approved.banned:
            return "it is banned"
        changed = [
            what
            for what, differs in (
                ("its prices", self.proposed.prices != self.approved.prices),
                ("its hardware", self.proposed.hardware != self.approved.hardware),
                ("its own labels", _own(self.proposed.labels) != _own(self.approved.labels)),
            )
            if differs
        ]
        if changed:
            return f"{' and '.join(changed)} would change"
        return "" if _plausible(self.proposed.labels) else "its measured labels are not of the usual form"


def _own(labels: Sequence[Label]) -> list[tuple[str, str]]:
    """Return the labels that the provider chose, with their counts, in any order."""
    return sorted((label.key, label.value) for label in labels if not is_measured(label.key))


def _plausible(labels: Sequence[Label]) -> bool:
    """Return whether each measured label is there once, in normal form. Two labels of a key would match more jobs."""
    measured = [label for label in labels if is_measured(label.key)]
    keys = {label.key for label in measured}
    return len(keys) == len(measured) and all(label.value == normalise(label.value) for label in measured)
