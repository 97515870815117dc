"""HPL: chooses the problem for a cluster, writes the input file, parses the result.

CPUs are measured by HPL of Debian's `hpcc`. hpcc runs its other tests too, on data of the same size. HPL comes last,
and only its result is parsed. GPUs are measured by HPL-MxP, if the settings name a command for it. The input file has
the same matrix once per sample.

In single-node mode each node solves its own matrix at the same time, and the cluster's rate is the sum of their rates.
"""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import dataclass

from deepgrid.benchmark.figures import MOST_SAMPLES, Samples, plausible
from deepgrid.benchmark.mpi import PRINT_VERSION, mpirun
from deepgrid.benchmark.settings import BenchmarkSettings
from deepgrid.errors import SlurmError
from deepgrid.lifecycle.job import Hardware

BYTES_PER_NUMBER = 8
KEY = "compute.gflops"
NODE_MARK = "deepgrid-node"
ON_GPUS = "one per GPU"

_RESULT = re.compile(
    r"^[ \t]*(HPL[_-](?:AI|MxP)[ \t]+)?W[RC]+\d\w{0,20}((?:[ \t]+\d{1,9}){4})[ \t]+\S{1,40}[ \t]+(\S{1,40})",
    re.M | re.I,
)
_VERSION = re.compile(r"^HPLinpack ([\d.]{1,20})", re.M)

_PRINT_REPORT = "sed -n '/^Begin of HPL section/,/^End of HPL section/p' hpccoutf.txt"

# One value of each: right-looking panels, 1-ring modified broadcast, depth 1, mixed swapping.
_INPUT = """\
HPLinpack benchmark input file
deepgrid
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
{samples}            # of problems sizes (N)
{orders}          Ns
1            # of NBs
{nb}         NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
{p}          Ps
{q}          Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
1            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
"""


@dataclass(frozen=True, slots=True)
class Problem:
    """A matrix of `n` by `n` in blocks of `nb`, on `p` x `q` ranks, `ranks_per_node` on each of `nodes`.

    With `alone`, each node has such a matrix, on `p` x `q` ranks of its own.
    """

    n: int
    nb: int
    p: int
    q: int
    nodes: int
    ranks_per_node: int
    cpus_per_rank: int
    by_gpus: bool = False
    alone: bool = False
    samples: int = 1

    def input_file(self) -> str:
        """Return the text of hpccinf.txt or HPL.dat."""
        orders = " ".join([str(self.n)] * self.samples)
        return _INPUT.format(samples=self.samples, orders=orders, nb=self.nb, p=self.p, q=self.q)


def problem_for(hardware: Hardware, settings: BenchmarkSettings) -> Problem:
    """Return the largest problem within the memory share and the time budget. Every node counts as the smallest one."""
    gpus = min(hardware.gpus_per_node) if settings.hpl_mxp else 0
    cpus = max(1, min(hardware.cpus_per_node) // gpus) if gpus else settings.cpus_per_rank
    ranks_per_node = gpus or max(1, min(hardware.cpus_per_node) // cpus)
    together = 1 if settings.single_node else hardware.nodes
    ranks = together * ranks_per_node
    p, q = process_grid(ranks)
    fits = order_in_memory(min(hardware.mem_per_node_mb), together, settings.memory_share)
    quick = fits if gpus else order_in_time(settings.hpl_seconds, settings.gflops_per_cpu * ranks * cpus)
    n = max(settings.block_size, whole_blocks(min(fits, quick), settings.block_size))
    return Problem(
        n=n,
        nb=settings.block_size,
        p=p,
        q=q,
        nodes=hardware.nodes,
        ranks_per_node=ranks_per_node,
        cpus_per_rank=cpus,
        by_gpus=gpus > 0,
        alone=settings.single_node,
        samples=settings.samples,
    )


def process_grid(ranks: int) -> tuple[int, int]:
    """P and Q with P * Q = `ranks` and P >= Q, as square as possible."""
    q = max(divisor for divisor in range(1, math.isqrt(ranks) + 1) if ranks % divisor == 0)
    return ranks // q, q


def order_in_memory(mem_per_node_mb: int, nodes: int, share: float) -> float:
    """Return the order of a matrix: `share` of the largest order that fits the memory of all nodes."""
    return math.sqrt(mem_per_node_mb * nodes * 1_000_000 / BYTES_PER_NUMBER) * share


def order_in_time(seconds: int, gflops: float) -> float:
    """Return the order of a matrix that is solved in `seconds`, with 2/3 n^3 operations."""
    return float((1.5 * seconds * gflops * 1e9) ** (1 / 3))


def whole_blocks(order: float, block_size: int) -> int:
    """`order` rounded down to a multiple of the block size."""
    return int(order // block_size) * block_size


def parameters(problem: Problem, settings: BenchmarkSettings) -> dict[str, str]:
    """Return what a reader needs to repeat the measurement."""
    found = {"ranks": ON_GPUS} if problem.by_gpus else {}
    return found | {
        "N": str(problem.n),
        "NB": str(problem.nb),
        "P x Q": f"{problem.p} x {problem.q}",
        "nodes": f"{problem.nodes}, each alone" if problem.alone else str(problem.nodes),
        "ranks per node": str(problem.ranks_per_node),
        "CPUs per rank": str(problem.cpus_per_rank),
        "mpirun": mpirun(settings),
    }


def options(problem: Problem) -> list[str]:
    """Return the options of sbatch: every CPU and all memory of the nodes."""
    ranks = problem.ranks_per_node
    nodes = [f"--nodes={problem.nodes}", f"--ntasks={problem.nodes * ranks}", f"--ntasks-per-node={ranks}"]
    gpus = [f"--gpus-per-node={ranks}"] if problem.by_gpus else []
    return [*nodes, f"--cpus-per-task={problem.cpus_per_rank}", "--mem=0", *gpus]


def script(problem: Problem, settings: BenchmarkSettings) -> str:
    """Return the batch script. It prints HPL's report; in single-node mode, one per node below its name."""
    shell, file, program, report = "#!/bin/bash", "hpccinf.txt", "hpcc", _PRINT_REPORT
    if problem.by_gpus:
        shell, file, program, report = "#!/bin/bash -l", "HPL.dat", settings.hpl_mxp, ""
    variables = [f"export OMP_NUM_THREADS={problem.cpus_per_rank}"]
    if problem.by_gpus and not settings.ucx:
        variables.append("export NCCL_IB_DISABLE=1")
    lines = [shell, "set -e", PRINT_VERSION, *variables, f"printf %s {shlex.quote(problem.input_file())} > {file}"]
    run = f"{mpirun(settings)} -n {problem.p * problem.q}"
    if not problem.alone:
        return "\n".join(filter(None, [*lines, f"{run} {program}", report]))
    return "\n".join([*lines, _on_each_node(f"{run} --host $node:{problem.ranks_per_node} {program}", file, report)])


def _on_each_node(run: str, file: str, report: str) -> str:
    """Return shell lines that run the program in a folder per node, all at once, and then print all reports."""
    return f"""\
nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
runs=
for node in $nodes; do
  mkdir "$node"
  cp {file} "$node"
  (cd "$node" && {run} > said 2>&1) &
  runs="$runs $!"
done
failed=
for run in $runs; do wait "$run" || failed=yes; done
for node in $nodes; do
  echo "{NODE_MARK} $node"
  cat "$node/said"
  {f'(cd "$node" && {report})' if report else ":"}
done
[ -z "$failed" ]"""


def parse(output: str) -> tuple[Samples, str]:
    """Return the rates of the fastest problem, and `hpl` or `hpl-mxp`. Raises SlurmError when there is none.

    Every solution must be verified. Logs of HPL-MxP have the mark `HPL_AI` or `HPL-MxP` before each result. If nodes
    ran alone, their rates are added, sample by sample.
    """
    reports = re.split(rf"^{NODE_MARK} .*$", output, flags=re.M)
    parsed = [_report(report) for report in (reports[1:] if len(reports) > 1 else reports)]
    kinds = {which for _, which in parsed}
    rates = [samples for samples, _ in parsed]
    return Samples(tuple(sum(each) for each in zip(*rates, strict=False))), max(kinds)


def _report(output: str) -> tuple[tuple[float, ...], str]:
    """Return the rates of the fastest problem of one report, and the kind of HPL."""
    rows = _RESULT.findall(output)[:MOST_SAMPLES]
    if not rows:
        raise SlurmError("HPL printed no result.")
    rates = [plausible(rate) for _, _, rate in rows]
    if "PASSED" not in output or "FAILED" in output:
        raise SlurmError("HPL's solution did not pass its own check.")
    results = [(rate, problem.split(), mark) for rate, (mark, problem, _) in zip(rates, rows, strict=True) if rate]
    if len(results) < len(rows):
        raise SlurmError("HPL printed a rate that is not a number.")
    _, best, mark = max(results)
    return tuple(rate for rate, problem, _ in results if problem == best), "hpl-mxp" if mark else "hpl"


def versions(output: str) -> dict[str, str]:
    """Return the version of HPL, if the output names it."""
    found = _VERSION.search(output)
    return {"hpl": found[1]} if found else {}
