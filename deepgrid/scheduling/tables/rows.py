"""A cache of rows whose memory is bounded by what recent rounds used."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Row = TypeVar("Row")


class RecentRows(Generic[Key, Row]):
    """Computes a row once per key. A row that a whole round did not use is dropped."""

    def __init__(self) -> None:
        self._older: dict[Key, Row] = {}
        self._recent: dict[Key, Row] = {}

    def next_round(self) -> None:
        """Drop the rows that were not used since the last call."""
        self._older, self._recent = self._recent, {}

    def get(self, key: Key, compute: Callable[[Key], Row]) -> Row:
        """Return the row of `key`."""
        row = self._recent.get(key)
        if row is None:
            row = self._older.get(key)
            if row is None:
                row = compute(key)
            self._recent[key] = row
        return row
