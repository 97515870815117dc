"""What people see of the one-machine grid: its processes as a table, its customer's environment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deployments.onemachine.prefect_server import USER, PrefectServer


@dataclass(frozen=True)
class Row:
    """One process: `pid` is None when it died, `address` empty when it listens nowhere."""

    name: str
    pid: int | None
    address: str
    log: Path


def table(rows: Sequence[Row]) -> str:
    """One line a process, columns aligned."""
    lines = [(row.name, str(row.pid or "dead"), row.address, str(row.log)) for row in rows]
    return aligned([("PROCESS", "PID", "ADDRESS", "LOG"), *lines])


def login_words(prefect: PrefectServer) -> str:
    """How to log in to Prefect's UI. Names the file of the login and never shows what is in it."""
    return (
        f"Prefect UI: {prefect.ui_url}\n"
        f"It asks once for a login, user {USER} and a password: paste the line from {prefect.login_file}"
    )


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Lines of as many cells each, in columns; the last column as it is."""
    widths = [max(len(cell) for cell in column) for column in list(zip(*lines, strict=True))[:-1]]
    padded = [[cell.ljust(width) for cell, width in zip(line, widths, strict=False)] for line in lines]
    return "\n".join("  ".join([*cells, line[-1]]) for cells, line in zip(padded, lines, strict=True))


def environment_file(variables: dict[str, str], binaries: Path) -> str:
    """Text of a file to source: the variables, and the project's commands on the path."""
    lines = [f"export {name}={_quoted(value)}" for name, value in variables.items()]
    return "\n".join([*lines, f'export PATH={_quoted(str(binaries))}:"$PATH"', ""])


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
