"""Rates and operations of the volumes of jobs, measured by IOR if the nodes have it, otherwise by fio.

fio is one process on one node: streams of 1 MiB blocks for the rate, random 4 KiB blocks for operations. It bypasses
the page cache where the file system allows. IOR runs on all nodes on a shared volume, with one file for all ranks, and
on one node on its disk, with one file per rank: streams of 2 MiB blocks, and random 4 KiB blocks. A volume that cannot
be used only loses its own figures.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from deepgrid.benchmark.figures import MOST_SAMPLES, Samples, collect
from deepgrid.benchmark.mpi import PRINT_VERSION, finder, mpirun, shell_for
from deepgrid.benchmark.settings import VOLUMES, BenchmarkSettings
from deepgrid.sbatch import StoragePaths

MOST_PROBLEM_CHARACTERS = 200  # of what a node says about a volume
_MARK = "deepgrid-volume"
_ON_DISK = "disk-"  # begins the names of volumes that belong to one node
_FIGURES = ("write.bw.mibps", "write.iops", "read.bw.mibps", "read.iops")
_SMALL_SHARE = 16  # the part of the size that is used for random blocks

# Arguments: name of the volume, its folder. If one volume fails, the next is still measured.
_MEASURE = """\
volume=
trap 'rm -rf "$volume"' EXIT # also at the time limit
measure() {
  echo "deepgrid-volume $1"
  volume=$(mktemp -d "$2/deepgrid-benchmark.XXXXXX") || return
  if [ -n "$use_ior" ]; then measure_by_ior "$1"; else measure_by_fio; fi
  rm -rf "$volume"
}
measure_by_fio() {
  direct=0
  ! dd if=/dev/zero of="$volume/probe" bs=4096 count=1 oflag=direct 2> /dev/null || direct=1
  for sample in $(seq "$SAMPLES"); do
    fio --output-format=json --directory="$volume" --filename=data --size="$SIZE" --time_based --runtime="$RUNTIME" \\
      --ioengine=psync --direct="$direct" --invalidate=1 --end_fsync=1 \\
      --name=write --rw=write --bs=1m --name=read --stonewall --rw=read --bs=1m \\
      --name=randwrite --stonewall --rw=randwrite --bs=4k --name=randread --stonewall --rw=randread --bs=4k || return
  done
}
"""


def options(nodes: int, settings: BenchmarkSettings) -> list[str]:
    """Return the options of sbatch: the ranks of IOR on each node; only one node in single-node mode."""
    nodes = 1 if settings.single_node else nodes
    ranks = settings.ior_ranks_per_node
    return [f"--nodes={nodes}", f"--ntasks={nodes * ranks}", f"--ntasks-per-node={ranks}"]


def script(nodes: int, paths: StoragePaths, settings: BenchmarkSettings, apptainer: str = "apptainer") -> str:
    """Return the batch script. It measures one volume after the other."""
    folders = folders_of(paths)
    measures = [f"measure {volume} {shlex.quote(folders[volume])}" for volume in settings.volumes]
    limits = f"SAMPLES={settings.samples} SIZE={settings.fio_size_mb}m RUNTIME={round(settings.fio_seconds * 1000)}ms"
    lines = [shell_for(settings.ior), limits, finder(settings.ior, apptainer), "use_ior="]
    lines.append("use_ior=yes" if settings.ior else "! find_program ior || use_ior=yes")
    lines.append(f'[ -z "$use_ior" ] || {PRINT_VERSION}')
    return "\n".join([*lines, _MEASURE, _by_ior(1 if settings.single_node else nodes, settings), *measures])


def _by_ior(nodes: int, settings: BenchmarkSettings) -> str:
    """Return the shell function that runs IOR on a volume: for rates, then for operations."""
    ranks = settings.ior_ranks_per_node
    run = f"{mpirun(settings)} --map-by ppr:{ranks}:node"
    each = max(2, settings.fio_size_mb // ranks // 2 * 2)
    small = max(1, each // _SMALL_SHARE)
    # IOR refuses random offsets (-z) with collective MPI-IO (-c), and in one file for all ranks with -C.
    usual = '-i "$SAMPLES" -w -r -e -g -O summaryFormat=CSV -o "$volume/data"'
    return f"""\
measure_by_ior() {{
  find_program ior || {{ echo 'IOR is not installed where the settings say.'; return; }}
  case $1 in
    {_ON_DISK}*) ranks={ranks} api="-a POSIX -F" streams= ;;
    *) ranks={nodes * ranks} api="-a MPIIO" streams="-c -C" ;;
  esac
  {run} -n "$ranks" "${{program[@]}}" $api $streams {usual} -t 2m -b {each}m &&
    {run} -n "$ranks" "${{program[@]}}" $api -z {usual} -t 4k -b {small}m
}}
"""


def parameters(settings: BenchmarkSettings) -> dict[str, str]:
    """Return what a reader needs to repeat the measurement."""
    return {
        "file": f"{settings.fio_size_mb} MiB per node",
        "seconds of each run of fio": str(settings.fio_seconds),
        "ranks of IOR per node": str(settings.ior_ranks_per_node),
        "volumes": ", ".join(settings.volumes),
    }


def folders_of(paths: StoragePaths) -> dict[str, str]:
    """Return the folder of each volume, by its name in the labels."""
    return {
        "scratch": paths.job,
        "shared-tmp": paths.user_tmp,
        "shared-world-tmp": paths.world_tmp,
        "disk-tmp": paths.disk_tmp,
        "disk-world-tmp": paths.disk_world_tmp,
    }


def parse(output: str) -> tuple[dict[str, Samples], dict[str, str], str]:
    """Return samples by label key, the error output of each volume without figures, and `ior` or `fio`."""
    figures: dict[str, Samples] = {}
    problems: dict[str, str] = {}
    programs: set[str] = set()
    for section in re.split(rf"^{_MARK} ", output, flags=re.MULTILINE)[1:][:MOST_SAMPLES]:
        volume, _, said = section.partition("\n")
        by_ior = re.search(r"^\s*access,bw\(MiB/s\),", said, re.MULTILINE)
        samples = collect(_of_ior(said) if by_ior else _of_fio(said))
        if volume not in VOLUMES:
            continue
        if samples.keys() == set(_FIGURES):
            figures |= {f"storage.{volume}.{key}": one for key, one in samples.items()}
            programs.add("ior" if by_ior else "fio")
        else:
            lines = [line.strip() for line in said.splitlines() if line.strip()] or ["it said nothing"]
            problem = next((line for line in lines if line.startswith("ERROR")), lines[0])  # IOR's
            problems[volume] = problem[:MOST_PROBLEM_CHARACTERS]
    return figures, problems, "-".join(sorted(programs))


def versions(output: str) -> dict[str, str]:
    """Return the versions of fio or IOR that the output names."""
    found = {
        "fio": re.search(r'"fio version" : "fio-([\w.-]{1,40})"', output),
        "ior": re.search(r"^IOR-([\w.+-]{1,40})", output, re.MULTILINE),
    }
    return {name: version[1] for name, version in found.items() if version}


def _of_fio(said: str) -> Iterator[tuple[str, str]]:
    """Yield the figures of fio's JSON reports, perhaps between warnings. None, if one of them failed."""
    decoder, at = json.JSONDecoder(), 0
    found: list[tuple[str, str]] = []
    while (at := said.find("{\n", at)) >= 0 and len(found) < len(_FIGURES) * MOST_SAMPLES:
        try:
            report, at = decoder.raw_decode(said, at)
            found += _of_report(report)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return
    yield from found


def _of_report(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the four figures of one report. Raises ValueError, KeyError or TypeError without them."""
    jobs: Mapping[str, Mapping[str, Mapping[str, float]]] = {job["jobname"]: job for job in report["jobs"]}
    if any(job["error"] for job in report["jobs"]):
        raise ValueError("A run of fio failed.")
    return [
        ("write.bw.mibps", str(jobs["write"]["write"]["bw_bytes"] / 2**20)),
        ("write.iops", str(jobs["randwrite"]["write"]["iops"])),
        ("read.bw.mibps", str(jobs["read"]["read"]["bw_bytes"] / 2**20)),
        ("read.iops", str(jobs["randread"]["read"]["iops"])),
    ]


def _of_ior(said: str) -> Iterator[tuple[str, str]]:
    """Yield the figures of IOR's CSV: access, bw(MiB/s), IOPS, Latency, block(KiB), xfer(KiB) and more.

    Rates come from the largest transfers, operations from the smallest. If all have one size, one run failed, and
    there are no operations.
    """
    row = r"^\s*(read|write),([^,\n]{1,40}),([^,\n]{1,40}),[^,\n]{0,40},[^,\n]{0,40},([0-9.]{1,40}),"
    rows = re.findall(row, said, re.MULTILINE)
    sizes = {size for _, _, _, size in rows}
    largest, smallest = max(sizes, key=_number, default=""), min(sizes, key=_number, default="")
    for access, rate, operations, size in rows:
        if size == largest:
            yield f"{access}.bw.mibps", rate
        if size == smallest != largest:
            yield f"{access}.iops", operations


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
