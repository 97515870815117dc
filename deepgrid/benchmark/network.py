"""MPI between nodes, one rank per node: a ping-pong between the first two, an all-to-all among all.

Addresses outside the cluster are not contacted, so up- and downloads are not measured.
"""

from __future__ import annotations

import re
import shlex
from importlib.resources import files

from deepgrid.benchmark.settings import BenchmarkSettings
from deepgrid.errors import SlurmError

KEYS = ("network.p2p.bw.mbps", "network.p2p.latency.us", "network.all-to-all.latency.us")

_PINGPONG = (files("deepgrid.benchmark") / "pingpong.py").read_text()
_LINE = re.compile(r"^(network\.\S+) (\S+)$", re.MULTILINE)


def options(nodes: int) -> list[str]:
    """Options of sbatch: one rank on each node."""
    return [f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"]


def script(nodes: int, settings: BenchmarkSettings) -> str:
    """The batch script, for two or more nodes."""
    return "\n".join([
        "#!/bin/bash",
        "set -e",
        f"printf %s {shlex.quote(_PINGPONG)} > pingpong.py",
        f"mpirun {settings.mpi_options} -n {nodes} --map-by ppr:1:node {settings.python} pingpong.py",
    ])  # fmt: skip


def parse(output: str) -> dict[str, float]:
    """The three figures. Raises SlurmError when one is missing."""
    found = {key: float(value) for key, value in _LINE.findall(output) if key in KEYS}
    missing = [key for key in KEYS if not found.get(key)]
    if missing:
        raise SlurmError(f"The ping-pong printed no {missing[0]}.")
    return found
