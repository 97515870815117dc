"""The table of points x outcomes: how the jobs in flight at each fault ended, over all rounds of a session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from deepgrid.lifecycle.states import JobStatus

PROPERTY = "chaos"  # the name of the rows in test reports
ENDS = tuple(status.words for status in JobStatus if status.cold)


@dataclass(frozen=True)
class Row:
    """One fault of one round: final states of the affected jobs, duration, number of violated invariants."""

    fault: str
    ends: Counter[str]
    seconds: float
    wrong: int

    def to_report(self) -> dict[str, Any]:
        """Return the row as plain values for a test report."""
        return {**asdict(self), "ends": dict(self.ends)}

    @classmethod
    def from_report(cls, values: dict[str, Any]) -> Row:
        return cls(**{**values, "ends": Counter(values["ends"])})


class Table:
    """Adds up rows per fault."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._rows = list(rows)

    def add(self, row: Row) -> None:
        self._rows.append(row)

    def text(self) -> str:
        """Return the table as text; empty without rows."""
        if not self._rows:
            return ""
        names = list(dict.fromkeys(row.fault for row in self._rows))
        groups = [(name, [row for row in self._rows if row.fault == name]) for name in names]
        lines = [("point", "times", "jobs", *ENDS, "seconds", "verdict")]
        lines += [_cells(name, rows) for name, rows in [*groups, ("all", self._rows)]]
        widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        )


def _cells(name: str, rows: list[Row]) -> tuple[str, ...]:
    ends: Counter[str] = sum((row.ends for row in rows), Counter())
    wrong = sum(row.wrong for row in rows)
    mean = f"{sum(row.seconds for row in rows) / len(rows):.1f}"
    counts = (len(rows), ends.total(), *(ends[end] or "" for end in ENDS))
    return (name, *map(str, counts), mean, f"{wrong} wrong" if wrong else "right")
