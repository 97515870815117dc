"""What people see of the one-machine grid: its processes as a table, its customer's environment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Row:
    """One process: `pid` is None when it died, `address` empty when it listens nowhere."""

    name: str
    pid: int | None
    address: str
    log: Path


def show_table(rows: Sequence[Row], console: Console) -> None:
    """Print one line a process."""
    table = Table("process", "pid", "address", "log", box=None, pad_edge=False)
    for row in rows:
        table.add_row(row.name, str(row.pid) if row.pid else "[red]dead[/red]", row.address, str(row.log))
    console.print(table, soft_wrap=True)


def environment_file(variables: dict[str, str], binaries: Path) -> str:
    """Text of a file to source: the variables, and the project's commands on the path."""
    lines = [f"export {name}={_quoted(value)}" for name, value in variables.items()]
    return "\n".join([*lines, f'export PATH={_quoted(str(binaries))}:"$PATH"', ""])


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
