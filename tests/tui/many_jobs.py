"""Measures the app with 10,000 jobs: `python -m tests.tui.many_jobs` prints figures as JSON.

A fake answers for the chain, because requesting so many jobs takes minutes. It answers after the delay of a node.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

from textual.widgets import Input

from deepgrid.client.job import AsyncJob
from deepgrid.client.job_values import Remark
from deepgrid.lifecycle.job import Job, JobDefinition
from deepgrid.lifecycle.states import JobStatus
from deepgrid.tui.grid_app import GridApp
from deepgrid.tui.live_data import LiveData
from deepgrid.tui.overview import Account, ContractTerms, Overview
from deepgrid.tui.widgets.table import Table

COUNT, DELAY_S = 10_000, 0.02
MATCHES = 11  # of job-777: itself, and ten in 7770..7779
CUSTOMER = "0x" + "11" * 20


class ManyJobs:
    """Answers like an `Overview` of a customer with many jobs."""

    customer = CUSTOMER

    async def account(self) -> Account:
        await asyncio.sleep(DELAY_S)
        return Account(Decimal(5), Decimal(0), Decimal(1), 7, datetime.now(UTC))

    async def terms(self) -> ContractTerms:
        return ContractTerms(CUSTOMER, CUSTOMER, Decimal(100), 5, 10)

    async def ids(self, start: int = 0) -> list[int]:
        await asyncio.sleep(DELAY_S * 10 if start == 0 else DELAY_S)
        return list(range(1 + start, COUNT + 1))

    async def jobs(self, job_ids: Sequence[int]) -> list[AsyncJob]:
        await asyncio.sleep(DELAY_S)
        return [AsyncJob(cast(Any, None), job_of(job_id), cluster="alpha") for job_id in job_ids]

    async def remarks(self, _: int) -> list[Remark]:
        return []

    async def marks(self) -> dict[str, str]:
        await asyncio.sleep(DELAY_S)
        return {f"{job_id:046x}": "project=wing a note on this job" for job_id in range(1, COUNT + 1)}


def job_of(job_id: int) -> Job:
    """Return a finished job, or a running one for every thousandth id."""
    status = JobStatus.RUNNING if job_id % 1000 == 0 else JobStatus.FINISHED
    definition = JobDefinition(0, 128, 1, 1, f"{job_id:046x}")
    now = int(time.time())
    return Job(
        id=job_id, status=status, customer=CUSTOMER, provider=CUSTOMER, definition=definition, name=f"job-{job_id}",
        locked_wei=10**20, final_cost_wei=10**18, submitted_at=now - 900, assigned_at=now - 800, claimed_at=now - 700,
        started_at=now - 600, ended_at=0 if status.hot else now, cancel_requested_at=0, has_cancel_request=False,
        rate_wei_per_minute=10**17, cut_percent=2, granted_minutes=1000, last_refuser=None, delegate_spending=False,
        last_error="", exit_status=0,
    )  # fmt: skip


class ManyJobsApp(GridApp):
    async def _serve(self) -> None:
        self.live = LiveData(cast(Overview, ManyJobs()), self.show_news, self.now)
        await self.live.run()


async def measure() -> dict[str, float]:
    """Return the seconds of processor time until the table is usable and per key, seconds of all, and megabytes."""
    app = ManyJobsApp(lambda: cast(Any, None), CUSTOMER)
    started, started_cpu = time.monotonic(), time.process_time()
    async with app.run_test(size=(80, 24)) as pilot:
        while not app.screen.query_one(Table).row_count > 1:
            await pilot.pause(0.01)
        usable_s, usable_cpu_s = time.monotonic() - started, time.process_time() - started_cpu
        keys = ["G", "g", "f", "j", "k", "d", "u", "G", "b", "b"]
        before = time.process_time()
        await pilot.press(*keys)
        key_cpu_s = (time.process_time() - before) / len(keys)
        await pilot.press("slash", *"job-77")
        while app.screen.query_one("#filter", Input).value != "job-77":
            await pilot.pause(0.01)
        while len(app.live.jobs if app.live else ()) < COUNT:
            await pilot.pause(0.01)
        before = time.process_time()
        await pilot.press("7")
        while app.screen.query_one(Table).row_count - 1 != MATCHES:
            await pilot.pause(0.01)
        filter_cpu_s = time.process_time() - before
    return {
        "usable_s": usable_s, "usable_cpu_s": usable_cpu_s, "key_cpu_s": key_cpu_s, "filter_cpu_s": filter_cpu_s,
        "peak_mb": peak_mb(),
    }  # fmt: skip


def peak_mb() -> float:
    """Return the most memory of this process. `getrusage` would count what its parent had when it started this one."""
    found = re.search(r"^VmHWM:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found
    return int(found[1]) / 1024


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure())))
