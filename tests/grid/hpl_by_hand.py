"""HPL as an administrator runs it by hand on a cluster of the grid: the same problem, by sbatch, mpirun and hpcc."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from deepgrid.benchmark.hpl import Problem
from deepgrid.benchmark.trend import Result
from deployments.onemachine.grid import LocalGrid
from tests.grid.customer import PATIENCE_S


def rates_by_hand(grid: LocalGrid, cluster: str, result: Result) -> list[float]:
    """Solve the problem that a result of HPL rests on, and return the rate of each sample in GFLOP/s."""
    facts, problem = result.parameters, _problem(result.parameters)
    environment = {**os.environ, **grid.slurm.environment(cluster)}
    with tempfile.TemporaryDirectory(prefix="dg-hpl-", dir=grid.state) as folder:
        Path(folder, "hpccinf.txt").write_text(problem.input_file())
        options = [*shlex.split(facts["sbatch"]), f"--chdir={folder}", f"--output={folder}/out", "--wait", "--time=5"]
        run = f"{facts['mpirun']} -n {problem.p * problem.q} hpcc && grep -E '^WR|Ax-b' hpccoutf.txt"
        command = ["sbatch", *options, f"--wrap=export OMP_NUM_THREADS={problem.cpus_per_rank}; {run}"]
        subprocess.run(command, env=environment, check=True, capture_output=True, timeout=PATIENCE_S)
        said = Path(folder, "out").read_text()
    rates = [float(line.split()[-1]) for line in said.splitlines() if line.startswith("WR")]
    assert len(rates) == said.count("PASSED") == len(result.samples), said
    return rates


def _problem(facts: Mapping[str, str]) -> Problem:
    p, q = map(int, facts["P x Q"].split(" x "))
    return Problem(
        n=int(facts["N"]),
        nb=int(facts["NB"]),
        p=p,
        q=q,
        nodes=int(facts["nodes"]),
        ranks_per_node=int(facts["ranks per node"]),
        cpus_per_rank=int(facts["CPUs per rank"]),
        samples=int(facts["samples"]),
    )
