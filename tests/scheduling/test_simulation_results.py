"""The command of the simulator, and the bars."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepgrid.scheduling import simulate
from deepgrid.scheduling.simulation import comparison
from deepgrid.scheduling.simulation.testbed import CAPACITY
from deepgrid.scheduling.simulation.workloads import equal_demand, mixed, with_load


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
    """One seed under overload, with the code as it is; the published results have three."""
    equal = with_load(equal_demand(1, jobs=320), CAPACITY, comparison.OVERLOAD)
    assert comparison.run(equal, comparison.POLICIES["deepgrid"](1)).jain_customers >= comparison.LEAST_JAIN
    jobs = with_load(mixed(1, jobs=400), CAPACITY, comparison.OVERLOAD)
    first, ours = (comparison.run(jobs, comparison.POLICIES[name](1)) for name in ("cheapest", "deepgrid"))
    assert ours.slowdown <= comparison.MOST_SLOWDOWN_RATIO * first.slowdown
    assert ours.utilisation >= first.utilisation
