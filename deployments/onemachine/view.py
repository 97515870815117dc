"""Shows the one-machine grid: its processes as a table, the login, and environment files to source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deployments.onemachine.daemons.prefect_server import USER, PrefectServer


@dataclass(frozen=True)
class Row:
    """One process. `pid` is None when it died; `address` is empty when it does not listen."""

    name: str
    pid: int | None
    address: str
    log: Path


def table(rows: Sequence[Row]) -> str:
    """One line per process, with aligned columns."""
    lines = [(row.name, str(row.pid or "dead"), row.address, str(row.log)) for row in rows]
    return aligned([("PROCESS", "PID", "ADDRESS", "LOG"), *lines])


def login_words(prefect: PrefectServer) -> str:
    """How to log in to Prefect's UI. Names the file of the login, but never shows its content."""
    return (
        f"Prefect UI: {prefect.ui_url}\n"
        f"It asks once for a login, user {USER} and a password: paste the line from {prefect.login_file}"
    )


def web_words(address: str) -> str:
    """How to open the web app; empty if there is no address."""
    if not address:
        return ""
    return f"Web app of the grid's customer: {address}\nThis address works once; `./run status` prints the next one."


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Rows as lines with aligned columns. The last column is not padded."""
    widths = [max(len(cell) for cell in column) for column in list(zip(*lines, strict=True))[:-1]]
    padded = [[cell.ljust(width) for cell, width in zip(line, widths, strict=False)] for line in lines]
    return "\n".join("  ".join([*cells, line[-1]]) for cells, line in zip(padded, lines, strict=True))


def environment_file(variables: dict[str, str], binaries: Path) -> str:
    """Text of a file to source: the variables, and the project's commands on the path."""
    lines = [f"export {name}={_quoted(value)}" for name, value in variables.items()]
    return "\n".join([*lines, f'export PATH={_quoted(str(binaries))}:"$PATH"', ""])


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
