"""Prints states, remarks and the job's lines, each with its time; headings, pairs, tables; findings of doctors."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.text import Text

from deepgrid.client.display.text import clock, moment
from deepgrid.client.job_values import LogLine
from deepgrid.errors import ConfigurationError
from deepgrid.findings import Finding, Level
from deepgrid.lifecycle.states import JobStatus
from deepgrid.plain_text import plain

STYLES = {
    JobStatus.RUNNING: "bold cyan",
    JobStatus.FINISHED: "bold green",
    JobStatus.FAILED: "bold red",
    JobStatus.PANICKED: "bold red",
    JobStatus.CANCELLED: "bold yellow",
    JobStatus.OUT_OF_CREDITS: "bold yellow",
}
MARKS = {Level.GOOD: ("ok  ", "green"), Level.WARNING: ("warn", "yellow"), Level.BAD: ("BAD ", "bold red")}
_STATE_WIDTH = max(len(status.words) for status in JobStatus)


class Screen:
    """Lines on standard output, never cut or wrapped, so that they can be copied and piped."""

    def __init__(self, *, timestamps: bool = True, dates: bool = False, to_stderr: bool = False) -> None:
        self.console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True, stderr=to_stderr)
        self._timestamps, self._dates = timestamps, dates
        self._continues = False  # the last line of output continues

    def line(self, *parts: str | tuple[str, str], end: str = "\n") -> None:
        """Print a line of texts, or of texts with styles. Control characters are removed."""
        styled = [Text(plain(part)) if isinstance(part, str) else Text(plain(part[0]), part[1]) for part in parts]
        self.console.print(Text().join(styled), end=end)

    def state(self, at: float, status: JobStatus, what: str = "") -> None:
        """Print a state that the job reached at the unix time `at`."""
        name = status.words.upper()
        gap = " " * (_STATE_WIDTH - len(name) + 2)
        self.line((clock(at), "dim"), "  ", (name, STYLES.get(status, "bold")), f"{gap}{what}" if what else "")

    def remark(self, text: str, at: float | None = None) -> None:
        """Print a remark, with the current time or the unix time `at`."""
        self.line((clock(time.time() if at is None else at), "dim"), f"  {text}")

    def output(self, line: LogLine) -> None:
        """Print a line of the job's output, with the time at which it was written."""
        at = line.written or line.arrived
        shown = moment(int(at.timestamp())) if self._dates else clock(at.timestamp())
        prefix = f"{shown}  | " if self._timestamps and not self._continues else ""
        self._continues = line.continues
        self.console.file.write(f"{prefix}{line.text}{'' if line.continues else chr(10)}")
        self.console.file.flush()

    def heading(self, text: str) -> None:
        """Print a title above pairs."""
        self.line("")
        self.line((text, "bold"))

    def pairs(self, rows: Iterable[tuple[str, str]]) -> None:
        """Print names and values, one pair per line. Pairs without a value are left out."""
        shown = [(name, value) for name, value in rows if value]
        width = max((len(name) for name, _ in shown), default=0)
        for name, value in shown:
            self.line("  ", (f"{name:<{width}}", "dim"), f"  {value}")

    def table(self, columns: list[str], rows: Iterable[list[str]]) -> None:
        """Print a table. Columns are as wide as their longest cell; a heading with `>` aligns its column right."""
        for line in table_lines(columns, rows):
            self.console.print(line)


def table_lines(columns: list[str], rows: Iterable[list[str]]) -> list[Text]:
    """Return the lines of a table, the headings first."""
    cells = [[column.lstrip(">") for column in columns], *([plain(cell) for cell in row] for row in rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(columns))]
    lines = []
    for number, row in enumerate(cells):
        padded = [
            cell.rjust(width) if column.startswith(">") else cell.ljust(width)
            for column, cell, width in zip(columns, row, widths, strict=True)
        ]
        lines.append(Text("  ".join(padded).rstrip(), "" if number else "bold"))
    return lines


def json_text(value: Any) -> str:
    return json.dumps(value, indent=2)


def print_json(value: Any) -> None:
    print(json_text(value))


def report(findings: Sequence[Finding], what: str, *, as_json: bool) -> None:
    """Print the findings on `what`, such as "the services". Raises ConfigurationError if one keeps it from working."""
    if as_json:
        print_json([{**asdict(finding), "level": finding.level.value} for finding in findings])
    else:
        show_findings(Screen(), findings)
    bad = sum(finding.level is Level.BAD for finding in findings)
    if bad:
        raise ConfigurationError(f"{bad} of {len(findings)} findings keep {what} from working.")


def show_findings(screen: Screen, findings: Sequence[Finding]) -> None:
    """Print one line per finding, with the next step below it."""
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        screen.line(MARKS[finding.level], f"  {finding.subject:<{width}}  {finding.words}")
        if finding.next_step:
            screen.line(f"      {'':<{width}}  ", (finding.next_step, "dim"))
