"""What one run of a maintenance flow did: lines of its log, a table that is kept, and one sentence with the counts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from prefect import get_run_logger
from prefect.artifacts import acreate_table_artifact
from prefect.client.schemas.objects import State
from prefect.states import Completed

from deepgrid.observability.action_taken import ActionTaken, summary
from tasks.run_step import run_step

IDLE = "Idle"  # the state of a run that found nothing to do. `prune_history` deletes such runs early.
MOST_ROWS = 500  # of a table; the log has all


def idle(message: str) -> State[None]:
    """Return the final state of a run that found nothing to do."""
    return Completed(name=IDLE, message=message)


class ActionReport:
    """The actions of one run."""

    def __init__(self) -> None:
        self.actions: list[ActionTaken] = []

    def add(self, *actions: ActionTaken) -> None:
        """Note actions, and write them to the log at once: a later step may fail."""
        for one in actions:
            get_run_logger().info("done: %s", one.words)
        self.actions += actions

    def end(self, otherwise: str, also: str = "") -> State[None]:
        """Return the run's final state: the counts of its actions, or Idle with the sentence `otherwise`.

        The sentence `also` follows.
        """
        message = f"{summary(self.actions) or otherwise} {also}".strip()
        return Completed(message=message) if self.actions else idle(message)


@asynccontextmanager
async def reported_actions(key: str) -> AsyncIterator[ActionReport]:
    """Yield the report of this run. Its actions become the table artifact `key`, even if the run fails."""
    report = ActionReport()
    try:
        yield report
    finally:
        if report.actions:
            await run_step("publish what was done", _publish, key, report.actions)


async def _publish(key: str, actions: list[ActionTaken]) -> None:
    rows: list[dict[str, Any]] = [one.row() for one in actions[:MOST_ROWS]]
    columns = dict.fromkeys(name for row in rows for name in row)  # each has the columns of all
    table = [{name: row.get(name, "") for name in columns} for row in rows]
    await acreate_table_artifact(table, key=key, description=summary(actions))
