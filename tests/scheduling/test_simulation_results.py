"""The published comparison of policies: the page shows the stored results, and the bars hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.simulation import __main__ as simulate
from tools.simulation import comparison, plots
from tools.simulation.testbed import CAPACITY
from tools.simulation.workloads import equal_demand, mixed_workload, with_load

DOCS = Path(__file__).parents[2] / "docs"
RESULTS = DOCS / "images" / "simulation.csv"


def test_the_page_shows_the_stored_results() -> None:
    page = (DOCS / "explanation" / "scheduling.md").read_text()
    assert comparison.table(comparison.read_csv(RESULTS)) in page
    for name, jobs in simulate.JOBS.items():
        assert f"{jobs:,} jobs of `{name}`" in page


def test_the_stored_results_are_of_all_policies_loads_and_seeds_and_meet_the_bars() -> None:
    results = comparison.read_csv(RESULTS)
    runs = [(result.workload, result.load, result.seed, result.policy) for result in results]
    assert sorted(runs) == sorted(
        (workload, load, seed, policy)
        for workload in simulate.JOBS
        for load in simulate.LOADS
        for seed in simulate.SEEDS
        for policy in comparison.POLICIES
    )
    assert all(result.measures.jobs == simulate.JOBS[result.workload] for result in results)
    figures = comparison.bars(results)
    assert comparison.met(figures), figures


def test_stored_results_are_read_as_they_were_written_and_plotted(tmp_path: Path) -> None:
    results = comparison.read_csv(RESULTS)
    comparison.write_csv(tmp_path / "again.csv", results)
    assert (tmp_path / "again.csv").read_text() == RESULTS.read_text()
    for name in ("one.svg", "two.svg"):
        plots.draw([result for result in results if result.workload == "mixed"], tmp_path / name)
    plot = (tmp_path / "one.svg").read_text()
    assert plot == (tmp_path / "two.svg").read_text()
    assert "<svg" in plot and "<dc:date>" not in plot and len(plot) < 100_000


def test_a_run_repeats_a_stored_result() -> None:
    stored = {(r.workload, r.load, r.seed, r.policy): r.measures for r in comparison.read_csv(RESULTS)}
    jobs = with_load(equal_demand(1, simulate.JOBS["equal"]), CAPACITY, 0.9)
    again = comparison.run(jobs, comparison.POLICIES["least backlog"](1))
    assert again.slowdown == pytest.approx(stored["equal", 0.9, 1, "least backlog"].slowdown, rel=1e-5)


def test_the_commands_of_the_page_run_with_fewer_jobs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (DOCS / "explanation" / "scheduling.md").read_text()
    commands = re.findall(r"^    \.venv/bin/python -m tools\.simulation (.*)$", page, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        fewer = ["--jobs", "16", "--load", "0.9", "--seed", "1", "--out", str(tmp_path)]
        assert simulate.main([*command.split(), *fewer]) == 0
        assert "| 0.9 | deepgrid |" in capsys.readouterr().out
    files = {path.name for path in tmp_path.iterdir()}
    assert files == {
        "simulation.csv", "simulation-mixed.svg", "simulation-equal.svg", "simulation-mixed.swf.gz.svg",
    }  # fmt: skip


def test_the_command_reads_a_trace_and_names_a_broken_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    trace = tmp_path / "small.swf"
    trace.write_text("".join(f"{n} {9 * n} -1 60 4 -1 -1 4 120 -1 1 {n % 3} 1 -1 1 1 -1 -1\n" for n in range(1, 20)))
    options = ["--load", "0.5", "--seed", "1", "--policy", "random", "deepgrid"]
    assert simulate.main(["--trace", str(trace), *options]) == 0
    assert "| small.swf | 0.5 | deepgrid |" in capsys.readouterr().out
    trace.write_text("1 2 3\n")
    assert simulate.main(["--trace", str(trace), *options]) == 1
    assert "Line 1 of the trace has 3 fields" in capsys.readouterr().err


@pytest.mark.long
def test_the_scheduler_meets_the_bars_now() -> None:
    """One seed under overload, with the current code. The published results have three."""
    equal = with_load(equal_demand(1, simulate.JOBS["equal"]), CAPACITY, comparison.OVERLOAD)
    assert comparison.run(equal, comparison.POLICIES["deepgrid"](1)).jain_customers >= comparison.LEAST_JAIN
    jobs = with_load(mixed_workload(1, jobs=400), CAPACITY, comparison.OVERLOAD)
    first, ours = (comparison.run(jobs, comparison.POLICIES[name](1)) for name in ("cheapest", "deepgrid"))
    assert ours.slowdown <= comparison.MOST_SLOWDOWN_RATIO * first.slowdown
    assert ours.utilisation >= first.utilisation
