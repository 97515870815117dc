"""Plots a reconciliation: where the credits went, and billed minutes against minutes that ran.

The import takes a second. matplotlib caches fonts: set MPLCONFIGDIR to a writable folder.
"""

from __future__ import annotations

import io
from collections import Counter

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from deepgrid.billing.credits import WEI_PER_CREDIT
from deepgrid.billing.reconcile import Reconciliation

DOTS_PER_INCH = 80
AGREE, DIFFER = "#2a6f97", "#c1121f"


def draw(result: Reconciliation) -> bytes:
    """Return the plot as PNG. It needs no display and no global state of matplotlib."""
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    credits_axes, minutes_axes = figure.subplots(1, 2)
    _draw_credits(credits_axes, result)
    if result.has_slurm:
        _draw_minutes(minutes_axes, result.rows)
    else:
        _draw_providers(minutes_axes, result.rows)
    return as_png(figure)


def as_png(figure: Figure) -> bytes:
    """Return a figure as PNG."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DOTS_PER_INCH)
    return file.getvalue()


def _draw_credits(axes: Axes, result: Reconciliation) -> None:
    totals = result.totals
    incoming = [("brought forward", totals.brought_forward), ("transferred in", totals.taken)]
    outgoing = [("paid", totals.paid), ("cut", totals.cut), ("refunded", totals.refunded)]
    outgoing.append(("still locked", totals.still_locked))
    for at, (bar, parts) in enumerate((("in", incoming), ("out", outgoing))):
        left = 0.0
        for number, (label, wei) in enumerate(parts):
            width = wei / WEI_PER_CREDIT  # only the length of a bar; the exact sums are in the report
            axes.barh(bar, width, left=left, label=label, color=f"C{number + 2 * at}")
            left += width
    axes.invert_yaxis()
    axes.set_title("credits")
    axes.legend(fontsize="small", ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.1), frameon=False)


def _draw_minutes(axes: Axes, rows: pd.DataFrame) -> None:
    differs = rows["difference"] != ""
    agrees = (rows["outcome"] == "settled") & ~differs
    for label, color, some in (("agrees", AGREE, rows[agrees]), ("differs", DIFFER, rows[differs])):
        axes.scatter(list(some["ran"]), list(some["billed"]), s=18, color=color, label=label)
    axes.axline((0, 0), slope=1, color="grey", linewidth=0.8)
    axes.set(title="minutes of each job", xlabel="ran in Slurm", ylabel="billed")
    axes.legend(fontsize="small", frameon=False)


def _draw_providers(axes: Axes, rows: pd.DataFrame) -> None:
    minutes: Counter[str] = Counter()
    for provider, billed in zip(rows["provider"], rows["billed"], strict=True):
        if billed:
            minutes[f"{provider[:8]}…"] += billed
    axes.barh(list(minutes), list(minutes.values()), color=AGREE)
    axes.set(title="minutes billed by provider")
