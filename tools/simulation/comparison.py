"""Runs of several policies on the same workloads, their results as CSV and as a Markdown table, and the bars."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import fmean

from tools.simulation.measures import Measures, measure
from tools.simulation.policies import (
    Deepgrid,
    FirstComeCheapest,
    FirstComeLeastBacklog,
    Policy,
    RandomChoice,
)
from tools.simulation.simulator import Simulator
from tools.simulation.testbed import CAPACITY, SITES
from tools.simulation.workloads import TraceJob, with_load

POLICIES: dict[str, Callable[[int], Policy]] = {
    "cheapest": lambda seed: FirstComeCheapest(),
    "random": RandomChoice,
    "least backlog": lambda seed: FirstComeLeastBacklog(),
    "deepgrid": lambda seed: Deepgrid(),
}
"""Makes each policy for a seed."""

OVERLOAD = 1.3
LEAST_JAIN, MOST_SLOWDOWN_RATIO = 0.95, 0.7

COLUMNS: dict[str, Callable[[Measures], str]] = {
    "mean wait (min)": lambda m: f"{m.mean_wait_s / 60:,.0f}",
    "95 % wait less than (min)": lambda m: f"{m.p95_wait_s / 60:,.0f}",
    "mean bounded slowdown": lambda m: f"{m.slowdown:,.1f}",
    "utilisation": lambda m: f"{m.utilisation:.0%}",
    "Jain, customers": lambda m: f"{m.jain_customers:.3f}",
    "Jain, providers": lambda m: f"{m.jain_providers:.3f}",
    "credits per CPU hour": lambda m: f"{m.millicredits_per_cpu_hour / 1000:.2f}",
}
"""The columns of the table."""


@dataclass(frozen=True, slots=True)
class Result:
    """The measures of one run."""

    workload: str
    load: float
    seed: int
    policy: str
    measures: Measures


def run(jobs: Sequence[TraceJob], policy: Policy) -> Measures:
    """Simulate one workload under one policy on the published clusters."""
    return measure(Simulator(jobs, SITES, policy).run(), SITES)


def compare(
    workload: str, generate: Callable[[int], Sequence[TraceJob]], loads: Iterable[float], seeds: Sequence[int],
    policies: Sequence[str] = tuple(POLICIES),
) -> Iterator[Result]:  # fmt: skip
    """Yield the results of these policies, one after the other, at each load and with each seed."""
    for load in loads:
        for seed in seeds:
            jobs = with_load(generate(seed), CAPACITY, load)
            for name in policies:
                yield Result(workload, load, seed, name, run(jobs, POLICIES[name](seed)))


def mean(results: Iterable[Result]) -> dict[tuple[str, float, str], Measures]:
    """Return the means over the seeds, by workload, load and policy, in the order of the results."""
    groups: dict[tuple[str, float, str], list[Measures]] = {}
    for result in results:
        groups.setdefault((result.workload, result.load, result.policy), []).append(result.measures)
    return {key: _mean(some) for key, some in groups.items()}


def _mean(some: Sequence[Measures]) -> Measures:
    return Measures(**{one.name: fmean(getattr(measures, one.name) for measures in some) for one in fields(Measures)})


def table(results: Iterable[Result]) -> str:
    """Return a Markdown table of the means over the seeds."""
    lines = [f"| workload | load | policy | {' | '.join(COLUMNS)} |", "|---|---|---|" + "---:|" * len(COLUMNS)]
    for (workload, load, policy), measures in mean(results).items():
        cells = [write(measures) for write in COLUMNS.values()]
        lines.append(f"| {workload} | {load} | {policy} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def bars(results: Iterable[Result]) -> dict[str, float]:
    """Return the deciding figures: fairness under overload, slowdown and utilisation against the cheapest cluster."""
    means = mean(results)
    found: dict[str, float] = {}
    if ("equal", OVERLOAD, "deepgrid") in means:
        found["jain_customers"] = round(means["equal", OVERLOAD, "deepgrid"].jain_customers, 3)
    for load in sorted({key[1] for key in means if key[0] == "mixed"}):
        ours, first = means["mixed", load, "deepgrid"], means["mixed", load, "cheapest"]
        found[f"slowdown_ratio_{load}"] = round(ours.slowdown / first.slowdown, 4)
        found[f"utilisation_gain_{load}"] = round(ours.utilisation - first.utilisation, 4)
    return found


def met(figures: dict[str, float]) -> bool:
    """Return whether the bars hold."""
    return all(
        value >= LEAST_JAIN if name.startswith("jain")
        else value <= MOST_SLOWDOWN_RATIO if name.startswith("slowdown")
        else value >= 0
        for name, value in figures.items()
    )  # fmt: skip


def write_csv(path: Path, results: Iterable[Result]) -> None:
    """Store results; `read_csv` reads them."""
    names = ["workload", "load", "seed", "policy", *(one.name for one in fields(Measures))]
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        for one in results:
            figures = [f"{value:.6g}" for value in asdict(one.measures).values()]
            writer.writerow([one.workload, one.load, one.seed, one.policy, *figures])


def read_csv(path: Path) -> list[Result]:
    """Return the stored results."""
    with path.open(newline="") as file:
        return [
            Result(
                row["workload"], float(row["load"]), int(row["seed"]), row["policy"],
                Measures(**{one.name: float(row[one.name]) for one in fields(Measures)}),
            )
            for row in csv.DictReader(file)
        ]  # fmt: skip
