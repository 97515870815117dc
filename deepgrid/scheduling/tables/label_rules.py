"""Finds clusters that meet conditions on labels, by the rules of `fit.compare`: all ANDed, a missing label fails."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from deepgrid.lifecycle.job import Affinity, Label
from deepgrid.scheduling.fit import ORDERS, LabelValue
from deepgrid.scheduling.tables.rows import RecentRows

Mask = npt.NDArray[np.bool_]


class _Sorted:
    """Clusters in the order of their values, as numbers or as texts. So a condition costs a binary search."""

    def __init__(self, entries: list[tuple[Any, int]]) -> None:
        entries.sort(key=lambda entry: entry[0])
        self._values = [value for value, _ in entries]
        self._clusters = np.array([cluster for _, cluster in entries], np.intp)

    def mark(self, row: Mask, op: str, wanted: Any) -> None:
        """Mark the clusters whose value satisfies `value op wanted`. An unknown `op` means equality."""
        first, after = bisect_left(self._values, wanted), bisect_right(self._values, wanted)
        end = len(self._values)
        below, above = (0, first), (after, end)
        ranges = {"<": [below], "<=": [(0, after)], ">=": [(first, end)], ">": [above], "!=": [below, above]}
        for start, stop in ranges.get(op, [(first, after)]):
            row[self._clusters[start:stop]] = True


class _Column:
    """The values that clusters have for one key."""

    def __init__(self) -> None:
        self.values: list[tuple[LabelValue, int]] = []

    @cached_property
    def _numbers(self) -> _Sorted:
        return _Sorted([(value.number, cluster) for value, cluster in self.values if value.number is not None])

    @cached_property
    def _texts(self) -> _Sorted:
        return _Sorted([(value.text, cluster) for value, cluster in self.values])

    @cached_property
    def _other_texts(self) -> _Sorted:
        return _Sorted([(value.text, cluster) for value, cluster in self.values if value.number is None])

    def mark(self, row: Mask, op: str, wanted: LabelValue) -> None:
        """Mark the clusters with a value that satisfies `value op wanted`."""
        if op in ("in", ":in:"):
            row[[cluster for value, cluster in self.values if wanted.text in value.text]] = True
        elif wanted.number is None:
            (self._other_texts if op in ORDERS else self._texts).mark(row, op, wanted.text)
        else:
            self._numbers.mark(row, op, wanted.number)
            if op not in ORDERS:
                self._other_texts.mark(row, op, wanted.text)


class ConditionTable:
    """For a condition, the clusters that meet it."""

    def __init__(self, labels: Sequence[Sequence[Label]]) -> None:
        self.labels = tuple(labels)
        self.rows: RecentRows[Affinity, Mask] = RecentRows()
        self._columns: dict[str, _Column] = {}
        for index, own in enumerate(labels):
            for label in own:
                self._columns.setdefault(label.key, _Column()).values.append((LabelValue.parse(label.value), index))

    def met(self, condition: Affinity) -> Mask:
        """For each cluster, whether it meets the condition."""
        return self.rows.get(condition, self._row)

    def _row(self, condition: Affinity) -> Mask:
        row = np.zeros(len(self.labels), np.bool_)
        column = self._columns.get(condition.key)
        if column is not None:
            column.mark(row, condition.op, LabelValue.parse(condition.value))
        return row
