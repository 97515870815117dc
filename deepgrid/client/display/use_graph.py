"""What a job used, as facts and as small graphs in text."""

from __future__ import annotations

from collections.abc import Sequence

from deepgrid.billing.resource_use import ResourceUse
from deepgrid.billing.use_samples import UseHistory

BARS = "▁▂▃▄▅▆▇█"
COLUMNS = 40
FEWEST_SAMPLES = 2  # one bar is no graph
MINUTE_S, HOUR_S = 60, 3600
UNKNOWN = "not known: the job was short, or its cluster does not measure it"


def use_rows(use: ResourceUse | None, history: UseHistory | None) -> list[tuple[str, str]]:
    """Return names and words: the receipt's figures, or those until the last sample, and graphs of the samples."""
    if use is not None and use.words:
        rows = [("use", use.words), ("hint", use.hint)]
    elif history is not None and (so_far := history.so_far).words:
        rows = [("use", f"{so_far.words} (in its first {_lasting(so_far.run_s)})"), ("hint", so_far.hint)]
    else:
        rows = [("use", UNKNOWN)] if use is not None else []
    return [*(row for row in rows if row[1]), *(_graphs(history) if history is not None else [])]


def _graphs(history: UseHistory) -> list[tuple[str, str]]:
    """Return a graph of each figure that is known, from nothing to all that was asked."""
    memory = [sample.memory_mb for sample in history.samples]
    gpus = [None if sample.gpu_percent is None else sample.gpu_percent / 100 for sample in history.samples]
    figures: dict[str, tuple[Sequence[float | None], int]] = {
        "CPUs": (history.cpus, history.asked_cpus),
        "memory": (memory, history.asked_memory_mb),
        "GPUs": (gpus, history.asked_gpus),
    }
    times = [sample.run_s for sample in history.samples]
    scale = f"0 to {_lasting(times[-1])}" if times else ""
    known = {name: bars(times, *figure) for name, figure in figures.items() if _is_graph(*figure)}
    return [(f"{name} in use", f"{drawn}  {scale}, a full bar is all that was asked") for name, drawn in known.items()]


def _is_graph(values: Sequence[float | None], asked: int) -> bool:
    return asked > 0 and sum(value is not None for value in values) >= FEWEST_SAMPLES


def bars(times: Sequence[int], values: Sequence[float | None], full: float) -> str:
    """Return bars of equal times up to the last. A value holds from the time before its own; None is a gap."""
    drawn, at = [], 0
    for column in range(COLUMNS):
        middle = (column + 0.5) * times[-1] / COLUMNS
        while times[at] < middle:
            at += 1
        value = values[at]
        drawn.append(" " if value is None else BARS[min(len(BARS) - 1, int(len(BARS) * min(1.0, value / full)))])
    return "".join(drawn)


def _lasting(seconds: int) -> str:
    if seconds < 2 * MINUTE_S:
        return f"{seconds} s"
    return f"{seconds // MINUTE_S} min" if seconds < 2 * HOUR_S else f"{seconds / HOUR_S:.1f} h"
