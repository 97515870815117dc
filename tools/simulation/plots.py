"""Plots of a comparison. The same results give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tools.simulation.comparison import Result

PANELS = {
    "mean_wait_s": "mean wait (s)",
    "slowdown": "mean bounded slowdown",
    "utilisation": "utilisation",
    "jain_customers": "Jain, customers",
    "jain_providers": "Jain, providers",
    "millicredits_per_cpu_hour": "credits / 1000 per CPU hour",
}
LOGARITHMIC = ("mean_wait_s", "slowdown")


def draw(results: Sequence[Result], path: Path) -> None:
    """Write an SVG with one panel per measure: a bar per policy and load, and a dot per seed."""
    figure = Figure(figsize=(11, 5.6), layout="constrained")
    for axes, (measure, title) in zip(figure.subplots(2, 3).flat, PANELS.items(), strict=True):
        _panel(axes, results, measure)
        axes.set_title(title)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    with mpl.rc_context({"svg.hashsalt": "deepgrid", "svg.fonttype": "none"}):  # text stays text: a small file
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def _panel(axes: Axes, results: Sequence[Result], measure: str) -> None:
    policies = list(dict.fromkeys(result.policy for result in results))
    loads = sorted({result.load for result in results})
    width = 0.8 / len(loads)
    for number, load in enumerate(loads):
        at = [place + (number - (len(loads) - 1) / 2) * width for place in range(len(policies))]
        values = [_values(results, policy, load, measure) for policy in policies]
        axes.bar(at, [sum(some) / len(some) for some in values], width, label=f"load {load}", color=f"C{number}")
        for place, some in zip(at, values, strict=True):
            axes.plot([place] * len(some), some, ".", color="black", markersize=4)
    axes.set_xticks(range(len(policies)), policies, fontsize="small")
    if measure in LOGARITHMIC:
        axes.set_yscale("log")


def _values(results: Sequence[Result], policy: str, load: float, measure: str) -> list[float]:
    return [
        getattr(result.measures, measure) for result in results if result.policy == policy and result.load == load
    ]  # fmt: skip
