"""MPI between nodes, one rank per node: a ping-pong between the first two, an all-to-all among all.

The keys mean what OSU's benchmarks measure: the latency of 4 MiB, the bandwidth of 4 MiB in both directions, and an
all-to-all of 1 MiB. Figures of small messages have the size in their key. Addresses outside the cluster are only
contacted by the command `speedtest` of the settings.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterator
from importlib.resources import files

from deepgrid.benchmark.settings import BenchmarkSettings
from deepgrid.errors import SlurmError

KEYS = ("network.p2p.bw.mbps", "network.p2p.latency.us", "network.all-to-all.latency.us")

_PINGPONG = (files("deepgrid.benchmark") / "pingpong.py").read_text()
_SMALL = ("network.p2p.latency.1b.us", "network.all-to-all.latency.8b.us")
_LINE = re.compile(r"^(network\.\S+) (\S+)$", re.MULTILINE)
_ROW = re.compile(r"^[ \t]*\d+[ \t]+([0-9.einfa+-]+)", re.MULTILINE | re.IGNORECASE)
_OSU = {
    "Bi-Directional Bandwidth": "network.p2p.bw.mbps",
    "All-to-All": "network.all-to-all.latency.us",
    "Latency": "network.p2p.latency.us",
}


def options(nodes: int) -> list[str]:
    """Return the options of sbatch: one rank on each node."""
    return [f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"]


def script(nodes: int, settings: BenchmarkSettings) -> str:
    """Return the batch script, for two or more nodes."""
    copy = f"printf %s {shlex.quote(_PINGPONG)} > pingpong.py"
    run = f"mpirun {settings.mpi_options} -n {nodes} --map-by ppr:1:node {settings.python} pingpong.py"
    return "\n".join(["#!/bin/bash", "set -e", copy, run, *filter(None, [settings.speedtest])])


def parse(output: str) -> dict[str, float]:
    """Return the figures of our ping-pong, of OSU's benchmarks or of both, and of Ookla's client if it ran.

    Raises SlurmError when one of the three main figures is missing.
    """
    found = {key: float(value) for key, value in _LINE.findall(output) if key in (*KEYS, *_SMALL)}
    found |= dict(_of_osu(output))
    missing = [key for key in KEYS if not found.get(key) or not math.isfinite(found[key])]
    if missing:
        raise SlurmError(f"The ping-pong printed no {missing[0]}.")
    return found | parse_speedtest(output)


def _of_osu(output: str) -> Iterator[tuple[str, float]]:
    """Yield figures of OSU's reports, each of the largest message: the last row below its title."""
    for report in re.split(r"^# OSU ", output, flags=re.MULTILINE)[1:]:
        title, _, rows = report.partition("\n")
        key = next((key for words, key in _OSU.items() if words in title), None)
        values = _ROW.findall(rows)
        if key and values:
            yield key, float(values[-1])


def parse_speedtest(output: str) -> dict[str, float]:
    """Up- and download of Ookla's JSON report in MB/s, as the keys have it; empty when there is none."""
    for line in re.findall(r"^\{.*\}[ \t]*$", output, re.MULTILINE | re.DOTALL):
        try:
            report = json.loads(line)
            rates = {way: float(report[way]["bandwidth"]) / 1e6 for way in ("upload", "download")}
        except (ValueError, KeyError, TypeError):
            continue
        return {f"network.{way}.bw.mbps": rate for way, rate in rates.items()}
    return {}
