"""The row of each deployment in the table."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from deployments.onemachine.view import line_of

NOON = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)


def deployment(*schedules: dict[str, Any], paused: bool = False) -> dict[str, Any]:
    return {"name": "alpha", "work_pool_name": "provider-alpha", "schedules": list(schedules), "paused": paused}


def schedule(*, active: bool = True, **when: object) -> dict[str, Any]:
    return {"active": active, "schedule": when}


def test_a_schedule_is_told_with_its_next_run() -> None:
    line = line_of("claim_jobs", deployment(schedule(cron="*/10 * * * *")), NOON)
    assert line[:3] == ("claim_jobs/alpha", "provider-alpha", "*/10 * * * *")
    assert line[3] == f"{NOON.astimezone():%a %d %b %H:%M}"


def test_an_interval_is_told_in_hours_minutes_and_seconds() -> None:
    assert line_of("f", deployment(schedule(interval=15.0)), None)[2] == "every 0:00:15"


def test_without_a_schedule_it_runs_on_demand() -> None:
    assert line_of("run_job", deployment(), None)[2:] == ("on demand", "")


def test_who_paused_it_sees_that_and_what_was_paused() -> None:
    for one in (
        deployment(schedule(cron="0 3 * * *", active=False)),
        deployment(schedule(cron="0 3 * * *"), paused=True),
    ):
        assert line_of("f", one, NOON)[2:] == ("0 3 * * *", "paused")
