"""fio on the volumes of jobs: streams of 1 MiB blocks for the rate, random 4 KiB blocks for operations.

One process runs on one node. It bypasses the page cache where the file system allows. A volume that cannot
be used only loses its own figures.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Mapping
from statistics import fmean

from deepgrid.benchmark.settings import BenchmarkSettings
from deepgrid.sbatch import StoragePaths

_MARK = "deepgrid-volume"

# Arguments: name of the volume, its folder. If one volume fails, the next is still measured.
_MEASURE = """\
folder=
trap 'rm -rf "$folder"' EXIT # also at the time limit
measure() {
  echo "deepgrid-volume $1"
  folder=$(mktemp -d "$2/deepgrid-benchmark.XXXXXX") || return
  direct=0
  ! dd if=/dev/zero of="$folder/probe" bs=4096 count=1 oflag=direct 2> /dev/null || direct=1
  fio --output-format=json --directory="$folder" --filename=data --size="$SIZE" --time_based --runtime="$RUNTIME" \\
    --ioengine=psync --direct="$direct" --invalidate=1 --end_fsync=1 \\
    --name=write --rw=write --bs=1m --name=read --stonewall --rw=read --bs=1m \\
    --name=randwrite --stonewall --rw=randwrite --bs=4k --name=randread --stonewall --rw=randread --bs=4k
  rm -rf "$folder"
}
"""


def script(paths: StoragePaths, settings: BenchmarkSettings) -> str:
    """Return the batch script. It measures one volume after the other."""
    folders = folders_of(paths)
    measures = [f"measure {volume} {shlex.quote(folders[volume])}" for volume in settings.volumes]
    limits = f"SIZE={settings.fio_size_mb}m RUNTIME={round(settings.fio_seconds * 1000)}ms"
    return "\n".join(["#!/bin/bash", limits, _MEASURE, *measures])


def folders_of(paths: StoragePaths) -> dict[str, str]:
    """Return the folder of each volume, by its name in the labels."""
    return {
        "scratch": paths.job,
        "shared-tmp": paths.user_tmp,
        "shared-world-tmp": paths.world_tmp,
        "disk-tmp": paths.disk_tmp,
        "disk-world-tmp": paths.disk_world_tmp,
    }


def parse(output: str) -> tuple[dict[str, float], dict[str, str]]:
    """Return figures by label key, and the error output of each volume without figures."""
    figures: dict[str, float] = {}
    problems: dict[str, str] = {}
    for section in re.split(rf"^{_MARK} ", output, flags=re.MULTILINE)[1:]:
        volume, _, said = section.partition("\n")
        report = _report(said)
        if report:
            figures |= {f"storage.{volume}.{key}": value for key, value in report.items()}
        else:
            problems[volume] = next((line.strip() for line in said.splitlines() if line.strip()), "fio said nothing")
    return figures, problems


def _report(said: str) -> dict[str, float]:
    """Return the four figures of fio's JSON report or IOR's CSV, perhaps between warnings; empty without figures."""
    if re.search(r"^\s*access,bw\(MiB/s\),", said, re.MULTILINE):
        return _of_ior(said)
    start = said.find("{\n")
    if start < 0:
        return {}
    try:
        report, _ = json.JSONDecoder().raw_decode(said[start:])
        jobs: Mapping[str, Mapping[str, Mapping[str, float]]] = {job["jobname"]: job for job in report["jobs"]}
        if any(job["error"] for job in report["jobs"]):
            return {}
        return {
            "write.bw.mibps": jobs["write"]["write"]["bw_bytes"] / 2**20,
            "read.bw.mibps": jobs["read"]["read"]["bw_bytes"] / 2**20,
            "write.iops": jobs["randwrite"]["write"]["iops"],
            "read.iops": jobs["randread"]["read"]["iops"],
        }
    except (ValueError, KeyError, TypeError):
        return {}


def _of_ior(said: str) -> dict[str, float]:
    """Return means of the repetitions in IOR's CSV: access, bw(MiB/s), IOPS and more.

    Empty unless it has both accesses.
    """
    figures: dict[str, float] = {}
    for access in ("write", "read"):
        rows = re.findall(rf"^\s*{access},([^,\n]+),([^,\n]+),", said, re.MULTILINE)
        try:
            rates = [(float(rate), float(operations)) for rate, operations in rows]
            figures[f"{access}.bw.mibps"] = fmean(rate for rate, _ in rates)
            figures[f"{access}.iops"] = fmean(operations for _, operations in rates)
        except ValueError:  # no rows, or no figures
            return {}
    return figures if all(math.isfinite(value) for value in figures.values()) else {}
