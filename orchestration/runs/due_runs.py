"""The scheduled runs of a work pool that are due, by the clock of Prefect's server, not by this machine's clock."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from uuid import UUID

from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import FlowRun
from prefect.settings import PREFECT_WORKER_PREFETCH_SECONDS
from prefect.states import Cancelled

from orchestration.runs.flow_runs import put

CLOCK_REFRESH_S = 60.0
ROUNDING = timedelta(seconds=1)  # the server's timestamp has whole seconds; a due run must not seem early


class DueRuns:
    """The due runs of one pool. It calls `look_again` when a run that it has seen too early is due."""

    def __init__(self, work_pool: str, look_again: Callable[[], None]) -> None:
        self._work_pool = work_pool
        self._look_again = look_again
        self._server_time: datetime | None = None
        self._read_at = 0.0

    async def read(self, client: PrefectClient, is_carried: Callable[[UUID], bool]) -> list[FlowRun]:
        """Return the runs that are due now. A run that is Pending too early would hold its deployment's only slot."""
        now = await self._now(client)
        soon = now + timedelta(seconds=PREFECT_WORKER_PREFETCH_SECONDS.value())
        found = await client.get_scheduled_flow_runs_for_work_pool(self._work_pool, scheduled_before=soon)
        due = []
        for run in (entry.flow_run for entry in found):
            ahead_s = ((run.next_scheduled_start_time or now) - now).total_seconds()
            if ahead_s > 0:
                asyncio.get_running_loop().call_later(ahead_s, self._look_again)
            elif not is_carried(run.id):
                due.append(run)
        skipped = await _skip_overtaken(client, due, now)
        return [run for run in due if run.id not in skipped]

    async def _now(self, client: PrefectClient) -> datetime:
        """Return the server's time, or up to one second later.

        In between, this machine's monotonic clock counts the time.
        """
        if self._server_time is None or time.monotonic() - self._read_at > CLOCK_REFRESH_S:
            date = (await client.hello()).headers.get("date")
            self._server_time = parsedate_to_datetime(date) + ROUNDING if date else datetime.now(UTC)
            self._read_at = time.monotonic()
        return self._server_time + timedelta(seconds=time.monotonic() - self._read_at)


async def _skip_overtaken(client: PrefectClient, runs: Sequence[FlowRun], now: datetime) -> set[UUID]:
    """Cancel scheduled runs that are due together with a later run of the same schedule. Returns their ids.

    Otherwise a long downtime, or a long pause of the pool, would end in a burst. Runs that people started stay.
    """
    late = [run for run in runs if run.auto_scheduled and run.expected_start_time and run.expected_start_time <= now]
    late.sort(key=lambda run: run.expected_start_time or now)
    newest = {_work_key(run): run.id for run in late}
    overtaken = [run for run in late if newest[_work_key(run)] != run.id]
    for run in overtaken:
        await put(client, run, Cancelled(message="Skipped: a later run was due as well."))
    return {run.id for run in overtaken}


def _work_key(run: FlowRun) -> tuple[UUID | None, str]:
    """Return a key for the run's work: runs with equal keys do the same work."""
    return run.deployment_id, json.dumps(run.parameters, sort_keys=True, default=str)
