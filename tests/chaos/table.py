"""Points x outcomes: how the jobs in flight at each fault ended, over all rounds of a session."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from deepgrid.lifecycle.states import JobStatus

ENDS = tuple(status.words for status in JobStatus if status.cold)


@dataclass(frozen=True)
class Row:
    """One fault of one round: how the jobs that felt it ended, how long it lasted, how much was wrong."""

    fault: str
    ends: Counter[str]
    seconds: float
    wrong: int


class Table:
    """Adds rows up."""

    def __init__(self) -> None:
        self._rows: list[Row] = []

    def add(self, row: Row) -> None:
        self._rows.append(row)

    def text(self) -> str:
        """The table for people; empty without a row."""
        if not self._rows:
            return ""
        names = list(dict.fromkeys(row.fault for row in self._rows))
        lines = [("point", "times", "jobs", *ENDS, "seconds", "verdict")]
        for name in names:
            rows = [row for row in self._rows if row.fault == name]
            ends: Counter[str] = sum((row.ends for row in rows), Counter())
            wrong = sum(row.wrong for row in rows)
            cells = (len(rows), ends.total(), *(ends[end] or "" for end in ENDS))
            mean = f"{sum(row.seconds for row in rows) / len(rows):.1f}"
            lines.append((name, *map(str, cells), mean, f"{wrong} wrong" if wrong else "right"))
        widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        )

    def save(self, file: Path) -> None:
        file.write_text(self.text() + "\n")
