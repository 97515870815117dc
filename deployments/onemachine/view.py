"""Shows the one-machine grid: its processes, the timetable of its flows, the login, and environment files to source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from shlex import quote
from typing import Any

from deployments.onemachine.daemons.prefect_server import USER, PrefectServer


@dataclass(frozen=True)
class Row:
    """One process. `pid` is None when it died; `address` is empty when it does not listen."""

    name: str
    pid: int | None
    address: str
    log: Path


def table(rows: Sequence[Row]) -> str:
    """Return one line per process, with aligned columns."""
    lines = [(row.name, str(row.pid or "dead"), row.address, str(row.log)) for row in rows]
    return align_rows([("PROCESS", "PID", "ADDRESS", "LOG"), *lines])


def login_words(prefect: PrefectServer) -> str:
    """Return how to log in to Prefect's UI. Names the file of the login, but never shows its content."""
    return (
        f"Prefect UI: {prefect.ui_url}\n"
        f"It asks once for a login, user {USER} and a password: paste the line from {prefect.login_file}"
    )


def web_words(address: str) -> str:
    """Return how to open the web app; empty if there is no address."""
    if not address:
        return ""
    return f"Web app of the grid's customer: {address}\nThis address works once; `./run status` prints the next one."


def align_rows(lines: Sequence[Sequence[str]]) -> str:
    """Return rows as lines with aligned columns. The last column is not padded."""
    widths = [max(len(cell) for cell in column) for column in list(zip(*lines, strict=True))[:-1]]
    padded = [[cell.ljust(width) for cell, width in zip(line, widths, strict=False)] for line in lines]
    return "\n".join("  ".join([*cells, line[-1]]) for cells, line in zip(padded, lines, strict=True))


def environment_file(variables: dict[str, str], binaries: Path) -> str:
    """Return the text of a file to source: the variables, and the project's commands on the path."""
    lines = [f"export {name}={quote(value)}" for name, value in variables.items()]
    return "\n".join([*lines, f'export PATH={quote(str(binaries))}:"$PATH"', ""])


Json = dict[str, Any]
HEAD = ("DEPLOYMENT", "RUNS IN", "SCHEDULE (UTC)", "NEXT RUN")


def timetable(prefect: PrefectServer) -> str:
    """Return one line per deployment of the Prefect server; empty when the server does not answer."""
    flows = {flow["id"]: flow["name"] for flow in prefect.ask("POST", "/api/flows/filter") or []}
    deployments = prefect.ask("POST", "/api/deployments/filter") or []
    lines = [line_of(flows.get(one["flow_id"], "?"), one, _next_run(prefect, one)) for one in deployments]
    return align_rows([HEAD, *sorted(lines)]) if lines else ""


def line_of(flow: str, deployment: Json, next_run: datetime | None) -> tuple[str, str, str, str]:
    """Return the table's cells for one deployment. Times are local."""
    name = f"{flow}/{deployment['name']}"
    schedules = deployment["schedules"]
    active = [one for one in schedules if one["active"] and not deployment["paused"]]
    when = ", ".join(_words(one["schedule"]) for one in active or schedules) or "on demand"
    upcoming = f"{next_run.astimezone():%a %d %b %H:%M}" if next_run else ""
    if schedules and not active:
        upcoming = "paused"
    return name, deployment["work_pool_name"] or "", when, upcoming


def _words(schedule: Json) -> str:
    """Return a schedule of Prefect's API in words: a cron line, or an interval in seconds."""
    if "cron" in schedule:
        return str(schedule["cron"])
    return f"every {timedelta(seconds=schedule['interval'])}" if "interval" in schedule else "by rule"


def _next_run(prefect: PrefectServer, deployment: Json) -> datetime | None:
    """Return the next scheduled start."""
    if not deployment["schedules"]:
        return None
    question = {
        "deployments": {"id": {"any_": [deployment["id"]]}},
        "flow_runs": {"state": {"type": {"any_": ["SCHEDULED"]}}},
        "sort": "NEXT_SCHEDULED_START_TIME_ASC",
        "limit": 1,
    }
    runs = prefect.ask("POST", "/api/flow_runs/filter", question)
    return datetime.fromisoformat(runs[0]["next_scheduled_start_time"]) if runs else None
