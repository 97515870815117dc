"""Simulates the grid under several policies of the meta-scheduler: `python -m tools.simulation`.

Prints a Markdown table. With `--out` it also writes the results as CSV and the plots as SVG. The same arguments give
the same results. Workloads, policies and measures are explained in `docs/explanation/scheduling.md`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from tools.simulation import comparison, swf
from tools.simulation.comparison import POLICIES, Result
from tools.simulation.workloads import TraceJob, equal_demand, mixed_workload

Generator = Callable[[int], Sequence[TraceJob]]
LOADS, SEEDS = (0.9, comparison.OVERLOAD), (1, 2, 3)
JOBS = {"mixed": 6_000, "equal": 2_400}
"""Sizes of the published workloads."""


def workloads(jobs: int = 0) -> dict[str, Generator]:
    """Return the generators by name. `jobs` replaces the published number of jobs."""
    return {
        "mixed": partial(mixed_workload, jobs=jobs or JOBS["mixed"]),
        "equal": partial(equal_demand, jobs=jobs or JOBS["equal"]),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns its exit status: 1 if a trace cannot be read."""
    options = _parser().parse_args(arguments)
    try:
        generators = _trace(options.trace, options.jobs) if options.trace else workloads(options.jobs)
    except (OSError, ValueError) as error:
        print(f"The trace {options.trace} cannot be read: {error}", file=sys.stderr)
        return 1
    results: list[Result] = []
    for name in options.workload or generators:
        for result in comparison.compare(name, generators[name], options.load, options.seed, options.policy):
            print(f"{name}, load {result.load}, seed {result.seed}: {result.policy}", file=sys.stderr)
            results.append(result)
    print(comparison.table(results), end="")
    if options.out:
        publish(results, options.out)
    return 0


def publish(results: Sequence[Result], folder: Path) -> None:
    """Write `simulation.csv`, and one plot per workload, into `folder`."""
    from tools.simulation import plots  # matplotlib takes a second

    folder.mkdir(parents=True, exist_ok=True)
    comparison.write_csv(folder / "simulation.csv", results)
    stored = comparison.read_csv(folder / "simulation.csv")
    for name in dict.fromkeys(result.workload for result in stored):
        plots.draw([result for result in stored if result.workload == name], folder / f"simulation-{name}.svg")


def _trace(path: Path, jobs: int) -> dict[str, Generator]:
    """Return the trace as a workload. The seed affects only the draws of a policy."""
    trace = swf.read(path)
    print(f"{path}: {len(trace.jobs)} jobs, {trace.skipped} lines skipped", file=sys.stderr)
    if not trace.jobs:
        raise ValueError("no job of it ran.")
    return {path.name: lambda seed: trace.jobs[: jobs or None]}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.simulation", description=__doc__)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--trace", type=Path, help="a file in the Standard Workload Format, maybe compressed (.gz)")
    source.add_argument("--workload", nargs="+", choices=list(JOBS), help="generated workloads (default: all)")
    parser.add_argument("--jobs", type=int, default=0, help="number of jobs (default: as published, or all)")
    parser.add_argument("--load", type=float, nargs="+", default=LOADS, help="demand, divided by capacity")
    parser.add_argument("--seed", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--policy", nargs="+", choices=list(POLICIES), default=list(POLICIES))
    parser.add_argument("--out", type=Path, help="folder for simulation.csv and the plots")
    return parser


if __name__ == "__main__":
    sys.exit(main())
