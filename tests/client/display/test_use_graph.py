"""Small graphs of what a job used, in text."""

from __future__ import annotations

from deepgrid.billing.resource_use import Measured, resource_use
from deepgrid.billing.use_samples import UseHistory, UseSample
from deepgrid.client.display.use_graph import COLUMNS, UNKNOWN, bars, use_rows

SAMPLES = (UseSample(cpu_s=30, memory_mb=400, run_s=30), UseSample(cpu_s=150, memory_mb=100, run_s=90))
HISTORY = UseHistory(2, 800, 0, SAMPLES)
USE = resource_use(2, 800, 120, Measured(cpu_s=180, memory_mb=400))


def test_a_running_job_shows_its_use_so_far_and_graphs() -> None:
    rows = dict(use_rows(None, HISTORY))
    assert rows["use"] == "asked 2 CPUs, used 1.7; asked 800 MB, used 400 MB (in its first 90 s)"
    drawn, _, scale = rows["CPUs in use"].partition("  ")
    assert drawn == "▅" * 13 + "█" * (COLUMNS - 13)
    assert scale == "0 to 90 s, a full bar is all that was asked"
    assert rows["memory in use"].startswith("▅" * 13 + "▂" * 27)
    assert "GPUs in use" not in rows


def test_the_receipt_says_more_than_the_samples() -> None:
    assert dict(use_rows(USE, HISTORY))["use"] == USE.words
    assert dict(use_rows(USE, None)) == {"use": USE.words}


def test_what_is_not_known_is_said_calmly() -> None:
    nothing = resource_use(2, 800, 120, Measured())
    assert use_rows(nothing, None) == [("use", UNKNOWN)]
    assert dict(use_rows(nothing, HISTORY))["use"].endswith("(in its first 90 s)")
    assert use_rows(None, None) == []


def test_figures_of_gpus_are_drawn_where_they_are_known() -> None:
    samples = tuple(UseSample(gpu_percent=percent, run_s=60 * n) for n, percent in enumerate((50, 200), 1))
    assert dict(use_rows(None, UseHistory(1, 100, 2, samples)))["GPUs in use"].startswith("▃" * 20 + "█" * 20)


def test_bars_of_absurd_figures_stay_in_their_place() -> None:
    assert bars([1, 10**12], [10.0**12, None], 1) == " " * COLUMNS
    assert bars([10**12], [10.0**12], 1) == "█" * COLUMNS
    assert bars([1], [0.0], 1) == "▁" * COLUMNS
