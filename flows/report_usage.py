"""Reports what clusters earned over a period, how busy they were, and who used them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from prefect import flow, runtime
from prefect.client.schemas.objects import State
from prefect.states import Completed

from orchestration.sessions import BlockName
from tasks.reconciliation import open_books
from tasks.run_step import run_step
from tasks.usage_steps import choose_periods, compute_usage, keep_usage, publish_usage, read_usage_entries


def _run_name() -> str:
    asked = runtime.flow_run.parameters
    since = asked.get("since")
    which = f"since {str(since)[:10]}" if since else f"last {asked.get('period')}"
    return f"usage of {asked.get('cluster') or asked.get('operator')}, {which}"


@flow(name="report_usage", flow_run_name=_run_name, persist_result=False)
async def report_usage(
    cluster: BlockName | None = None,
    operator: BlockName | None = None,
    period: Literal["week", "month"] = "week",
    since: datetime | None = None,
    until: datetime | None = None,
) -> State[None]:
    """Report the usage of a cluster, or of the whole grid, over a period and the one before it.

    The run leaves an artifact with tables and plots, and files with all jobs in the state folder.

    Args:
        cluster: Name of the provider block whose cluster is reported.
        operator: Name of the operator block, for the whole grid; instead of `cluster`.
        period: The last whole week (Monday to Sunday) or month in UTC, unless `since` is given.
        since: Start of another period, in UTC unless it has a time zone.
        until: End of that period, exclusive; by default now.
    """
    async with open_books(cluster, operator) as books:
        span, before = await run_step("choose the periods", choose_periods, books, period, since, until)
        entries = await run_step("read the chain", read_usage_entries, books, span, before)
        report = await run_step("compute the figures", compute_usage, books, span, before, entries)
        await run_step("keep the files", keep_usage, books, report)
        words = await run_step("publish the report", publish_usage, books, report, period if since is None else "")
    return Completed(message=words)
