"""The timetable of the grid's flows: all deployments at Prefect, with schedules and next runs."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from deployments.onemachine.daemons.prefect_server import PrefectServer
from deployments.onemachine.view import aligned

Json = dict[str, Any]
HEAD = ("DEPLOYMENT", "RUNS IN", "SCHEDULE (UTC)", "NEXT RUN")


def timetable(prefect: PrefectServer) -> str:
    """One line per deployment of the Prefect server; empty when the server does not answer."""
    flows = {flow["id"]: flow["name"] for flow in prefect.ask("POST", "/api/flows/filter") or []}
    deployments = prefect.ask("POST", "/api/deployments/filter") or []
    lines = [line_of(flows.get(one["flow_id"], "?"), one, _next_run(prefect, one)) for one in deployments]
    return aligned([HEAD, *sorted(lines)]) if lines else ""


def line_of(flow: str, deployment: Json, next_run: datetime | None) -> tuple[str, str, str, str]:
    """The table's cells for one deployment. Times are local."""
    name = f"{flow}/{deployment['name']}"
    schedules = deployment["schedules"]
    active = [one for one in schedules if one["active"] and not deployment["paused"]]
    when = ", ".join(_words(one["schedule"]) for one in active or schedules) or "on demand"
    upcoming = f"{next_run.astimezone():%a %d %b %H:%M}" if next_run else ""
    if schedules and not active:
        upcoming = "paused"
    return name, deployment["work_pool_name"] or "", when, upcoming


def _words(schedule: Json) -> str:
    """A schedule of Prefect's API in words: a cron line, or an interval in seconds."""
    if "cron" in schedule:
        return str(schedule["cron"])
    return f"every {timedelta(seconds=schedule['interval'])}" if "interval" in schedule else "by rule"


def _next_run(prefect: PrefectServer, deployment: Json) -> datetime | None:
    """The next scheduled start."""
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
