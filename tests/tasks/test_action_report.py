"""The report of a maintenance run: what it did is published also when a later step fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from prefect.logging import disable_run_logger

from deepgrid.errors import SlurmUnreachable
from deepgrid.observability.action_taken import ActionTaken
from tasks import action_report
from tasks.action_report import IDLE, reported_actions

Tables = dict[str, tuple[list[dict[str, object]], str]]


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Tables:
    """The published tables and their descriptions, by key."""
    found: Tables = {}

    async def run_step(_name: str, step: Callable[..., Awaitable[object]], *args: object) -> object:
        return await step(*args)

    async def create(table: list[dict[str, object]], key: str, description: str) -> None:
        found[key] = table, description

    monkeypatch.setattr(action_report, "run_step", run_step)
    monkeypatch.setattr(action_report, "acreate_table_artifact", create)
    return found


async def test_actions_become_a_table_with_the_columns_of_all(tables: Tables) -> None:
    with disable_run_logger():
        async with reported_actions("expire-claims-grid") as report:
            report.add(ActionTaken("took back", "job", "late", job_id=7), ActionTaken("removed", "folder"))
    state = report.end("No claim is overdue.")
    assert (state.is_completed(), state.name) == (True, "Completed")
    rows, description = tables["expire-claims-grid"]
    assert description == state.message == "Took back 1 job (7) and removed 1 folder."
    assert rows == [
        {"action": "took back job", "job": 7, "reason": "late"},
        {"action": "removed folder", "job": "", "reason": ""},
    ]


async def test_a_run_that_fails_later_has_published_what_it_did(tables: Tables) -> None:
    with disable_run_logger(), pytest.raises(SlurmUnreachable):
        async with reported_actions("collect-zombies-alpha") as report:
            report.add(ActionTaken("settled", "job", job_id=7))
            raise SlurmUnreachable("The login node cannot be reached.")
    assert "collect-zombies-alpha" in tables


async def test_a_run_without_actions_is_idle_and_has_no_table(tables: Tables) -> None:
    async with reported_actions("expire-claims-grid") as report:
        pass
    state = report.end("No claim is overdue.", "Two wait.")
    assert (state.is_completed(), state.name, state.message) == (True, IDLE, "No claim is overdue. Two wait.")
    assert tables == {}
