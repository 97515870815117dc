"""MPI between nodes, one rank per node: latency and bandwidth of the first two, an all-to-all among all.

OSU's benchmarks measure if the nodes have them, otherwise our own ping-pong with mpi4py. Both measure the latency of 4
MiB, the bandwidth of 4 MiB in both directions, and an all-to-all of 1 MiB. Figures of small messages have the size in
their key.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib.resources import files

from deepgrid.benchmark.figures import Samples, collect
from deepgrid.benchmark.mpi import PRINT_VERSION, finder, mpirun, shell_for
from deepgrid.benchmark.settings import BenchmarkSettings
from deepgrid.errors import SlurmError

BANDWIDTH, LATENCY, ALL_TO_ALL = KEYS = (
    "network.p2p.bw.mbps",
    "network.p2p.latency.us",
    "network.all-to-all.latency.us",
)

_PINGPONG = (files("deepgrid.benchmark") / "pingpong.py").read_text()
_LATENCY_SMALL, _ALL_TO_ALL_SMALL = _SMALL = ("network.p2p.latency.1b.us", "network.all-to-all.latency.8b.us")
_LINE = re.compile(r"^(network\.[a-z0-9.-]{1,60}) (\S{1,40})$", re.MULTILINE)
_ROW = re.compile(r"^[ \t]*(\d{1,12})[ \t]+([0-9.einfa+-]{1,40})(?=\s)", re.MULTILINE | re.IGNORECASE)
_OSU = (  # the words of a report's title, the key of its largest message, size and key of a small one
    ("Bi-Directional Bandwidth", BANDWIDTH, 0, ""),
    ("All-to-All", ALL_TO_ALL, 8, _ALL_TO_ALL_SMALL),
    ("Latency", LATENCY, 1, _LATENCY_SMALL),
)
_RUN_OSU = """\
  find_program osu_latency && {run} -n 2 --map-by ppr:1:node "${{program[@]}}" &&
    find_program osu_bibw && {run} -n 2 --map-by ppr:1:node "${{program[@]}}" &&
    find_program osu_alltoall && {run} -n {nodes} --map-by ppr:1:node "${{program[@]}}\""""


def options(nodes: int) -> list[str]:
    """Return the options of sbatch: one rank on each node."""
    return [f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"]


def script(nodes: int, settings: BenchmarkSettings, apptainer: str = "apptainer") -> str:
    """Return the batch script, for two or more nodes."""
    run = mpirun(settings)
    measure = f"{run} -n {nodes} --map-by ppr:1:node {settings.python} pingpong.py"
    osu = _RUN_OSU.format(run=run, nodes=nodes)
    lines = [shell_for(settings.osu), "set -e", PRINT_VERSION, finder(settings.osu, apptainer)]
    lines += [f"printf %s {shlex.quote(_PINGPONG)} > pingpong.py", f"osu() {{\n{osu}\n}}"]
    if not settings.osu:
        lines += [f"own() {{ {measure}; }}", "measure=own", "! find_program osu_latency || measure=osu"]
    else:
        lines += ["find_program osu_latency || { echo 'OSU is not installed where the settings say.'; false; }"]
        lines += ["measure=osu"]
    return "\n".join([*lines, f"for sample in $(seq {settings.samples}); do $measure; done"])


def parse(output: str) -> tuple[dict[str, Samples], str]:
    """Return the samples by label key, and which program measured: `osu` or `mpi4py`.

    Raises SlurmError when one of the three main figures is missing.
    """
    own = collect((key, number) for key, number in _LINE.findall(output) if key in (*KEYS, *_SMALL))
    osu = collect(_of_osu(output))
    found, which = (osu, "osu") if set(KEYS) <= osu.keys() else (own | osu, "osu" if osu else "mpi4py")
    missing = [key for key in KEYS if key not in found]
    if missing:
        raise SlurmError(f"The network's benchmark printed no {missing[0]}.")
    return found, which


def versions(output: str) -> dict[str, str]:
    """Return the version of OSU's benchmarks, if they ran."""
    found = re.search(r"^# OSU [^\n]{1,100}? v([\d.]{1,20})", output, re.MULTILINE)
    return {"osu": found[1]} if found else {}


def _of_osu(output: str) -> Iterator[tuple[str, str]]:
    """Yield figures of OSU's reports: of the largest message, which is the last row, and of a small one."""
    for report in re.split(r"^# OSU ", output, flags=re.MULTILINE)[1:]:
        title, _, rows = report.partition("\n")
        matching = next((one for one in _OSU if one[0] in title), None)
        values = _ROW.findall(rows)
        if matching and values:
            _, key, small, small_key = matching
            yield key, values[-1][1]
            yield from ((small_key, value) for size, value in values[:-1] if int(size) == small)
