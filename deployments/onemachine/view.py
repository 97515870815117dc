"""What people see of the one-machine grid: its processes as a table, its customer's environment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """One process: `pid` is None when it died, `address` empty when it listens nowhere."""

    name: str
    pid: int | None
    address: str
    log: Path


def table(rows: Sequence[Row]) -> str:
    """One line a process, columns aligned."""
    cells = [("PROCESS", "PID", "ADDRESS", "LOG")]
    cells += [(row.name, str(row.pid or "dead"), row.address, str(row.log)) for row in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(3)]
    aligned = [[text.ljust(width) for text, width in zip(line[:3], widths, strict=True)] for line in cells]
    return "\n".join("  ".join([*line, log]) for line, (*_, log) in zip(aligned, cells, strict=True))


def environment_file(variables: dict[str, str], binaries: Path) -> str:
    """Text of a file to source: the variables, and the project's commands on the path."""
    lines = [f"export {name}={_quoted(value)}" for name, value in variables.items()]
    return "\n".join([*lines, f'export PATH={_quoted(str(binaries))}:"$PATH"', ""])


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
