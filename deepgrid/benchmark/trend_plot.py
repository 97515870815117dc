"""Plots a cluster's figures over time, with the spread of their samples.

The import takes a second. matplotlib caches fonts: set MPLCONFIGDIR to a writable folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from statistics import median

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from deepgrid.benchmark.labels import is_measured
from deepgrid.benchmark.trend import Result
from deepgrid.billing.plot import as_png

MOST_POINTS = 600  # per line: more than ten years of weeks
PANELS = (
    ("GFLOPS", ("compute.gflops",)),
    ("network, MB/s", ("network.p2p.bw.mbps", "network.upload.bw.mbps", "network.download.bw.mbps")),
    ("latency, µs", ("network.p2p.latency.1b.us", "network.all-to-all.latency.8b.us")),
    ("volumes, MiB/s", (".bw.mibps",)),
)


def draw_trend(results: Sequence[Result]) -> bytes:
    """Return the plot as PNG. Its only texts are keys of measured labels and dates."""
    figure = Figure(figsize=(11, 6.5), layout="constrained")
    for axes, (title, ends) in zip(figure.subplots(2, 2).flat, PANELS, strict=True):
        _draw(axes, title, [one for one in results if one.samples and one.key.endswith(ends) and is_measured(one.key)])
    return as_png(figure)


def _draw(axes: Axes, title: str, results: Sequence[Result]) -> None:
    """Draw a line per key, with a bar from the smallest to the largest sample."""
    lines: dict[str, list[Result]] = {}
    for one in sorted(results, key=lambda one: one.at):
        lines.setdefault(one.key, []).append(one)
    for key, points in lines.items():
        some = points[-MOST_POINTS:]
        days = [datetime.fromtimestamp(one.at, UTC) for one in some]
        middles = [float(median(one.samples)) for one in some]
        below = [middle - min(one.samples) for middle, one in zip(middles, some, strict=True)]
        above = [max(one.samples) - middle for middle, one in zip(middles, some, strict=True)]
        axes.errorbar(days, middles, yerr=[below, above], marker="o", markersize=3, linewidth=1, capsize=2, label=key)  # type: ignore[arg-type]
    axes.set_title(title)
    axes.set_ylim(bottom=0)
    axes.tick_params(axis="x", labelrotation=20, labelsize="small")
    if lines:
        axes.legend(fontsize="x-small", frameon=False)
