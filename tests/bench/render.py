"""`./run bench render`: milliseconds to render jobs of 1 to 1,000 steps, without shellcheck.

The steps are commands with variables, conditions and loops in turn. A figure is the minimum CPU time of several
renderings, because other processes only add to it. Exit status 1: a limit is exceeded, or the cost is not linear.
"""

from __future__ import annotations

import gc
import json
import sys
import time

from rich.console import Console
from rich.table import Table

from deepgrid.sbatch import StoragePaths, render
from deepgrid.workflow.models import Definition, EnvVar, JobResources, Step, StepFor, StepRun

SIZES = (1, 10, 100, 1000)
ROUNDS = 30
MOST_MS_10, MOST_RATIO = 5.0, 120.0


def job_of(steps: int) -> Definition:
    """Return a job with this total number of steps."""
    resources = JobResources(tasks=1, cpus_per_task=1, mem_per_cpu=1, gpus=0)
    return Definition(resources=resources, steps=tuple(_step(number) for number in range(steps)))


def _step(number: int) -> Step:
    run = StepRun(command=f"echo 'step {number}' \"$A\"", env=(EnvVar(key="A", value=f"it's {number}"),))
    if number % 3 == 1:
        return Step(name=f"loop {number}", for_=StepFor(parallel=False, items=("a", "b"), steps=()))
    return Step(name=f"step {number}", if_="$A != x" if number % 3 else None, run=run)


def milliseconds(steps: int) -> float:
    """Return the CPU time of one rendering: the minimum of several."""
    job, times = job_of(steps), []
    gc.disable()  # like timeit
    for _ in range(ROUNDS):
        started = time.process_time()
        render(job, StoragePaths())
        times.append((time.process_time() - started) * 1000)
    gc.enable()
    return min(times)


def main() -> int:
    render(job_of(1), StoragePaths())  # this compiles the templates
    figures = {f"ms_{steps}_steps": round(milliseconds(steps), 3) for steps in SIZES}
    ratio = figures["ms_1000_steps"] / figures["ms_10_steps"]
    table = Table("steps", "ms", title="Rendering a job")
    for steps in SIZES:
        table.add_row(f"{steps:,}", f"{figures[f'ms_{steps}_steps']:.2f}")
    Console(stderr=True).print(table)
    print(json.dumps({**figures, "ratio_1000_to_10": round(ratio, 1)}))
    return 0 if figures["ms_10_steps"] <= MOST_MS_10 and ratio <= MOST_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
