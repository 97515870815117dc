"""HPL: chooses the problem for a cluster, writes the input file, parses the result.

CPUs are measured by HPL of Debian's `hpcc`. hpcc runs its other tests too, on data of the same size. HPL comes last,
and only its result is parsed. GPUs are measured by HPL-MxP, if the settings name a command for it.
"""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import dataclass

from deepgrid.benchmark.settings import BenchmarkSettings
from deepgrid.errors import SlurmError
from deepgrid.lifecycle.job import Hardware

BYTES_PER_NUMBER = 8
KEY, WHICH = "compute.gflops", "compute.benchmark"
_RESULT = re.compile(r"^[ \t]*(HPL[_-](?:AI|MxP)\s+)?W[RC]+\d\w*(?:\s+\d+){4}\s+\S+\s+(\S+)", re.M | re.I)

_PRINT_REPORT = "sed -n '/^Begin of HPL section/,/^End of HPL section/p' hpccoutf.txt"

# One value of each: right-looking panels, 1-ring modified broadcast, depth 1, mixed swapping.
_INPUT = """\
HPLinpack benchmark input file
deepgrid
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
{n}          Ns
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
    """A matrix of `n` by `n` in blocks of `nb`, on `p` x `q` ranks, `ranks_per_node` on each of `nodes`."""

    n: int
    nb: int
    p: int
    q: int
    nodes: int
    ranks_per_node: int
    cpus_per_rank: int
    by_gpus: bool = False

    def input_file(self) -> str:
        """Return the text of hpccinf.txt or HPL.dat."""
        return _INPUT.format(n=self.n, nb=self.nb, p=self.p, q=self.q)


def problem_for(hardware: Hardware, settings: BenchmarkSettings) -> Problem:
    """Return the largest problem within the memory share and the time budget. Every node counts as the smallest one."""
    gpus = min(hardware.gpus_per_node) if settings.hpl_mxp else 0
    cpus = max(1, min(hardware.cpus_per_node) // gpus) if gpus else settings.cpus_per_rank
    ranks_per_node = gpus or max(1, min(hardware.cpus_per_node) // cpus)
    ranks = hardware.nodes * ranks_per_node
    p, q = process_grid(ranks)
    fits = order_in_memory(min(hardware.mem_per_node_mb), hardware.nodes, settings.memory_share)
    quick = fits if gpus else order_in_time(settings.hpl_seconds, settings.gflops_per_cpu * ranks * cpus)
    n = max(settings.block_size, whole_blocks(min(fits, quick), settings.block_size))
    return Problem(n, settings.block_size, p, q, hardware.nodes, ranks_per_node, cpus, by_gpus=gpus > 0)


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


def options(problem: Problem) -> list[str]:
    """Return the options of sbatch: every CPU and all memory of the nodes."""
    ranks = problem.ranks_per_node
    nodes = [f"--nodes={problem.nodes}", f"--ntasks={problem.nodes * ranks}", f"--ntasks-per-node={ranks}"]
    gpus = [f"--gpus-per-node={ranks}"] if problem.by_gpus else []
    return [*nodes, f"--cpus-per-task={problem.cpus_per_rank}", "--mem=0", *gpus]


def script(problem: Problem, settings: BenchmarkSettings) -> str:
    """Return the batch script. It prints HPL's report."""
    shell, file, program = "#!/bin/bash", "hpccinf.txt", f"hpcc\n{_PRINT_REPORT}"
    if problem.by_gpus:
        shell, file, program = "#!/bin/bash -l", "HPL.dat", settings.hpl_mxp
    return f"""\
{shell}
set -e
export OMP_NUM_THREADS={problem.cpus_per_rank}
printf %s {shlex.quote(problem.input_file())} > {file}
mpirun {settings.mpi_options} -n {problem.p * problem.q} {program}"""


def parse(output: str) -> tuple[float, str]:
    """Return the best rate of the verified solutions, and `hpl` or `hpl-mxp`. Raises SlurmError when there is none.

    Logs of HPL-MxP have the mark `HPL_AI` or `HPL-MxP` before each result.
    """
    results = [(float(rate), "hpl-mxp" if mark else "hpl") for mark, rate in _RESULT.findall(output)]
    if not results:
        raise SlurmError("HPL printed no result.")
    if not all(math.isfinite(rate) for rate, _ in results):
        raise SlurmError("HPL printed a rate that is not a number.")
    if "PASSED" not in output or "FAILED" in output:
        raise SlurmError("HPL's solution did not pass its own check.")
    return max(results)
