"""What people see of a benchmark in the Prefect UI: the labels, what they rest on, and a plot of all results.

matplotlib loads slowly, so it is imported when needed.
"""

from __future__ import annotations

import base64
import os
import re
import time
from collections.abc import Sequence
from typing import Any

from prefect import get_run_logger
from prefect.artifacts import acreate_image_artifact, acreate_table_artifact

from deepgrid.benchmark.outcome import Comparison, Outcome
from deepgrid.benchmark.trend import MonthFigure, Result, age_days, by_month, day, last_measured_at
from deepgrid.provider.benchmark_archive import BenchmarkArchive
from orchestration.grid_events import DEGRADED, Conditions

MOST_ROWS, LOGGED_MONTHS = 500, 12  # of the table by month, and in the log of a run
_MARKUP = re.compile(r"([\\`*_\[\]<>!|#~])")


def escape_markdown(words: str) -> str:
    """Return text as Markdown that shows it."""
    return _MARKUP.sub(r"\\\1", words)


async def publish_labels(
    cluster: str, rows: Sequence[Comparison], outcomes: Sequence[Outcome], results: Sequence[Result], words: str
) -> None:
    """Publish the tables `benchmark-CLUSTER`, of old and new labels, and `benchmark-CLUSTER-parameters`.

    A label that was not measured now has the age of its value.
    """
    words = escape_markdown(words)  # they may quote the output of a node
    measured_at, now = last_measured_at(results), int(time.time())
    samples = {key: one for outcome in outcomes for key, one in outcome.evidence.samples.items()}
    noisy = {key for outcome in outcomes for key in outcome.evidence.noisy}
    table: list[dict[str, Any]] = [
        {
            "label": row.key,
            "was": row.old,
            "is": row.new,
            "moved": "yes" if row.moved else "",
            "samples": len(samples[row.key].values) if row.key in samples else "",
            "spread": f"{samples[row.key].spread_percent:.0f} %" if row.key in samples else "",
            "remark": "noisy" if row.key in noisy else "",
            "measured": _day_and_age(measured_at.get(row.key), now),
        }
        for row in rows
    ]
    await acreate_table_artifact(table=table, key=f"benchmark-{cluster}", description=words)
    parameters = [
        {"program": outcome.program, "parameter": name, "value": value}
        for outcome in outcomes
        for name, value in outcome.evidence.parameters.items()
    ]
    await acreate_table_artifact(table=parameters, key=f"benchmark-{cluster}-parameters", description=words)


async def publish_trend(cluster: str, archive: BenchmarkArchive, results: Sequence[Result]) -> None:
    """Publish the image `benchmark-CLUSTER-trend`, of all figures, and the table `benchmark-CLUSTER-months`."""
    os.environ.setdefault("MPLCONFIGDIR", str(archive.folder / "matplotlib"))  # for its font cache
    from deepgrid.benchmark.trend_plot import draw_trend

    image = base64.b64encode(draw_trend(results)).decode()
    what = f"The measurements of {cluster} over time, with the spread of their samples."
    await acreate_image_artifact(f"data:image/png;base64,{image}", key=f"benchmark-{cluster}-trend", description=what)
    await _publish_months(cluster, by_month(results)[:MOST_ROWS])


async def _publish_months(cluster: str, figures: Sequence[MonthFigure]) -> None:
    """Publish the table `benchmark-CLUSTER-months`, and write the last months to the log of the run."""
    months: dict[str, list[str]] = {}
    for one in figures:
        months.setdefault(one.month, []).append(f"{one.key}={one.median:.2f}")
    for month, medians in list(months.items())[:LOGGED_MONTHS]:
        get_run_logger().info("medians of %s: %s", month, " ".join(medians))
    table: list[dict[str, Any]] = [
        {
            "month": one.month,
            "label": one.key,
            "median": round(one.median, 3),
            "lowest": round(one.lowest, 3),
            "highest": round(one.highest, 3),
            "results": one.results,
        }
        for one in figures
    ]
    what = f"The measurements of {cluster} by month, the newest first."
    await acreate_table_artifact(table=table, key=f"benchmark-{cluster}-months", description=what)


def tell_drop(cluster: str, before: str, now: str) -> None:
    """Send the event that the cluster is degraded, or that this is over; none when nothing changed."""
    Conditions("benchmark", cluster, {DEGRADED: before}).tell(DEGRADED, now)


def _day_and_age(at: int | None, now: int) -> str:
    """Return the day of a measurement and its age."""
    if at is None:
        return ""
    days = age_days(at, now)
    return f"{day(at)} ({days} {'day' if days == 1 else 'days'} ago)" if days else day(at)
