"""The results of a cluster over time: a drop marks the cluster degraded, noise and other programs do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deepgrid.benchmark import measuring
from deepgrid.benchmark.labels import DEGRADED
from deepgrid.benchmark.outcome import Outcome
from deepgrid.benchmark.settings import BenchmarkSettings
from deepgrid.benchmark.trend import MonthFigure, Result, by_month, drops, last_days, results_of, with_drops
from deepgrid.benchmark.trend_plot import draw_trend
from deepgrid.lifecycle.job import Label

GFLOPS, LATENCY = "compute.gflops", "network.p2p.latency.us"
WEEK_S = 7 * 86400
FIRST = 1_795_000_000


def weekly(key: str, *figures: float | tuple[float, ...], program: str = "hpl") -> list[Result]:
    """One result per week. A figure may be several samples, which are then noisy."""
    rows = []
    for number, one in enumerate(figures):
        samples = one if isinstance(one, tuple) else (one, one, one)
        remark = "noisy" if isinstance(one, tuple) else ""
        at = FIRST + number * WEEK_S
        rows.append(Result(at, "hpl", key, "", samples, remark, {"program": program}))
    return rows


@pytest.mark.parametrize(
    ("key", "figures", "dropped"),
    [
        (GFLOPS, [100, 100, 100, 84], True),
        (GFLOPS, [100, 100, 100, 86], False),
        (GFLOPS, [100, 100, 100, 150], False),
        (GFLOPS, [100, 100, 10], False),  # too few results to know what is usual
        (GFLOPS, [1000, *[100] * 10, 90], False),  # only the last ten count
        (GFLOPS, [100, 100, 5, 100, 84], True),  # one bad week does not move the median
        (GFLOPS, [100, 100, 100, (84, 99, 40)], False),  # noisy: its best sample is as usual
        (GFLOPS, [100, 100, 100, (50, 60, 40)], True),
        (LATENCY, [10, 10, 10, 12], True),  # more time is worse
        (LATENCY, [10, 10, 10, 5], False),
        (LATENCY, [10, 10, 10, (30, 10, 20)], False),
    ],
)
def test_a_drop_of_more_than_fifteen_percent_counts(key: str, figures: list[float], dropped: bool) -> None:
    found = drops(weekly(key, *figures), [key])
    assert [one.key for one in found] == ([key] if dropped else [])
    assert (Label(DEGRADED, key) in with_drops((Label("os", "linux"),), found)) is dropped


def test_the_worst_drop_is_the_label_and_goes_when_it_is_over() -> None:
    results = weekly(GFLOPS, 100, 100, 100, 80) + weekly(LATENCY, 10, 10, 10, 40)
    found = drops(results, [GFLOPS, LATENCY])
    assert [one.key for one in found] == [LATENCY, GFLOPS]
    assert found[1].words == "compute.gflops is 80.00, after a median of 100.00: 20 % slower"
    assert with_drops((), found) == (Label(DEGRADED, LATENCY),)
    assert with_drops((Label(DEGRADED, LATENCY),), ()) == ()
    assert drops(results, [GFLOPS])[0].key == GFLOPS, "a figure that is no label any more does not count"


def test_results_of_another_program_are_not_compared() -> None:
    results = [*weekly(LATENCY, 10, 10, 10, program="osu"), *weekly(LATENCY, 1, 1, 1, 90, program="mpi4py")[3:]]
    assert drops(results, [LATENCY]) == ()


def test_a_failed_program_has_the_day_of_its_last_result() -> None:
    failed = [Outcome("hpl", problem="it crashed"), Outcome("network", problem="no route")]
    assert last_days(failed, weekly(GFLOPS, 1, 2)) == {"hpl": "2026-11-25"}


def test_a_result_has_samples_parameters_and_the_name_of_its_output() -> None:
    output = "".join(f"network.p2p.{key} {n}\n" for n in (10, 11, 12) for key in ("bw.mbps", "latency.us"))
    output += "network.all-to-all.latency.us 7\n"
    outcome = measuring.read("network", output, BenchmarkSettings(), measuring.Request(("--nodes=2",), ""))
    rows = {one.key: one for one in results_of(outcome, FIRST, "file.txt.gz")}
    assert rows["network.p2p.bw.mbps"].samples == (10, 11, 12)
    assert rows["network.p2p.bw.mbps"].value == "11.00"
    assert rows["network.benchmark"].samples == ()
    assert rows["network.p2p.bw.mbps"].parameters == {"program": "mpi4py", "samples": "3", "sbatch": "--nodes=2"}
    assert rows["network.p2p.bw.mbps"].output == "file.txt.gz"


def test_the_plot_is_an_image_also_of_nothing() -> None:
    for results in ([], weekly(GFLOPS, 100, (90, 110, 95), 100)):
        assert draw_trend(results).startswith(b"\x89PNG")


def test_the_figures_of_each_month_are_medians_of_its_results() -> None:
    """How fast the cluster was in March is still known in November."""
    results = [replace(one, at=FIRST) for one in weekly(GFLOPS, 100.0, (70.0, 90.0, 110.0), 120.0)]
    text = Result(FIRST, "machine", "os", "linux")
    later = replace(results[0], at=FIRST + 40 * 86400)
    assert by_month([*results, text, later]) == (
        MonthFigure("2026-12", GFLOPS, 100.0, 100.0, 100.0, 1),
        MonthFigure("2026-11", GFLOPS, 100.0, 90.0, 120.0, 3),
    )
