"""Plots a usage report: credits per day, and the share of the offered capacity in use per day.

The import takes a second. matplotlib caches fonts: set MPLCONFIGDIR to a writable folder.
"""

from __future__ import annotations

import io
from datetime import UTC, datetime

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from deepgrid.billing.credits import WEI_PER_CREDIT
from deepgrid.billing.period import DAY_S
from deepgrid.billing.usage.usage_figures import Bar, Usage, UsageReport
from deepgrid.billing.usage.usage_tables import RESOURCES

DOTS_PER_INCH = 80
MOST_TICKS = 8


def draw_usage(report: UsageReport) -> bytes:
    """Return the plot as PNG. It shows no names, so no untrusted text is drawn."""
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    credits_axes, busy_axes = figure.subplots(1, 2)
    _draw_credits(credits_axes, report.now)
    _draw_busy(busy_axes, report.now)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DOTS_PER_INCH)
    return file.getvalue()


def _draw_credits(axes: Axes, figures: Usage) -> None:
    places = range(len(figures.bars))
    paid, cut = ([wei / WEI_PER_CREDIT for wei in column] for column in _money(figures.bars))  # only lengths of bars
    axes.bar(places, paid, label="earned", color="#2a6f97")
    axes.bar(places, cut, bottom=paid, label="cut of the platform", color="#e9c46a")
    _mark(axes, figures, "credits")


def _money(bars: tuple[Bar, ...]) -> tuple[list[int], list[int]]:
    return [bar.paid_wei for bar in bars], [bar.cut_wei for bar in bars]


def _draw_busy(axes: Axes, figures: Usage) -> None:
    for name, field in RESOURCES.items():
        pairs = [(getattr(bar.used_s, field), getattr(bar.offered_s, field)) for bar in figures.bars]
        if any(offered for _, offered in pairs):
            shares = [100 * used / offered if offered else 0.0 for used, offered in pairs]
            axes.plot(range(len(pairs)), shares, marker="o", markersize=3, label=name)
    axes.set_ylim(bottom=0)
    _mark(axes, figures, "% of the capacity in use")


def _mark(axes: Axes, figures: Usage, title: str) -> None:
    """Set the title, and the days below the bars."""
    bars = figures.bars
    step = -(-len(bars) // MOST_TICKS)
    days = [datetime.fromtimestamp(bar.since, UTC).strftime("%m-%d") for bar in bars]
    axes.set_xticks(range(0, len(bars), step), days[::step])
    length_s = bars[1].since - bars[0].since if len(bars) > 1 else DAY_S
    axes.set_title(f"{title} per {'day' if length_s == DAY_S else f'{length_s // DAY_S} days'}")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small", ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.1), frameon=False)
