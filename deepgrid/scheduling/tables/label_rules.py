"""Which clusters meet conditions on labels. The rules are those of `fit.compare`: all ANDed, a missing label fails."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from deepgrid.lifecycle.job import Affinity, Label
from deepgrid.scheduling.fit import LabelValue, compare
from deepgrid.scheduling.tables.rows import RecentRows

Mask = npt.NDArray[np.bool_]


class _Column:
    """The values that clusters have for one key, each with the indexes of these clusters."""

    def __init__(self) -> None:
        self.members: dict[str, list[int]] = {}

    @cached_property
    def values(self) -> list[LabelValue]:
        return [LabelValue.parse(text) for text in self.members]

    def matching(self, op: str, wanted: LabelValue) -> list[int]:
        """Indexes of the clusters whose value satisfies `value op wanted`."""
        if op in ("==", "=") and wanted.number is None:
            return self.members.get(wanted.text, [])
        return [
            index for value in self.values if compare(value, op, wanted) for index in self.members[value.text]
        ]  # fmt: skip


class ConditionTable:
    """For a condition, the clusters that meet it."""

    def __init__(self, labels: Sequence[Sequence[Label]]) -> None:
        self.labels = tuple(labels)
        self.rows: RecentRows[Affinity, Mask] = RecentRows()
        self._columns: dict[str, _Column] = {}
        for index, own in enumerate(labels):
            for label in own:
                column = self._columns.setdefault(label.key, _Column())
                column.members.setdefault(label.value, []).append(index)

    def met(self, condition: Affinity) -> Mask:
        """For each cluster, whether it meets the condition."""
        return self.rows.get(condition, self._row)

    def _row(self, condition: Affinity) -> Mask:
        row = np.zeros(len(self.labels), np.bool_)
        column = self._columns.get(condition.key)
        if column is not None:
            row[column.matching(condition.op, LabelValue.parse(condition.value))] = True
        return row
