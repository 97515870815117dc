"""The cluster's connection to the Internet, from one node: Ookla's client, or iperf3 against a chosen server.

Nothing outside the cluster is contacted unless the settings name a command or a server.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from deepgrid.benchmark.figures import LARGEST, MOST_SAMPLES, Samples, collect
from deepgrid.benchmark.settings import BenchmarkSettings
from deepgrid.errors import SlurmError

UPLOAD, DOWNLOAD = "network.upload.bw.mbps", "network.download.bw.mbps"
BYTES_PER_MB, BITS_PER_BYTE = 1e6, 8

_CLIENT_TIMEOUT_MS = 10_000
_PATIENTLY = r"""patiently() {
  local report status
  for try in 1 2 3 4 5; do
    status=0
    report=$("$@") || status=$?
    [[ $status != 0 || $report == *'"error":'* ]] || break
    ((status != 127)) || break # there is no iperf3
    sleep 2
  done
  printf '%s\n' "$report"
  return "$status"
}
"""  # with -J, iperf3 3.12 has status 0 after errors, too


def is_wanted(settings: BenchmarkSettings) -> bool:
    """Return whether the settings allow a connection to the outside."""
    return bool(settings.speedtest or settings.iperf3_server)


def parameters(settings: BenchmarkSettings) -> dict[str, str]:
    """Return what a reader needs to repeat the measurement."""
    if settings.speedtest:
        return {"command": settings.speedtest}
    server = f"{settings.iperf3_server}:{settings.iperf3_port}"
    return {"server": server, "seconds of a run": str(settings.iperf3_seconds)}


def script(settings: BenchmarkSettings) -> str:
    """Return the batch script. It prints a JSON report per sample; of iperf3 one for each direction.

    A server of iperf3 measures one client at a time, and turns others away, so its client tries again.
    """
    commands = [settings.speedtest]
    if not settings.speedtest:
        server = f"-c {shlex.quote(settings.iperf3_server)} -p {settings.iperf3_port}"
        iperf = f"iperf3 -J -t {settings.iperf3_seconds} --connect-timeout {_CLIENT_TIMEOUT_MS} {server}"
        commands = [f"patiently {iperf}", f"patiently {iperf} -R"]
    lines = "\n  ".join(commands)
    return f"#!/bin/bash\nset -e\n{_PATIENTLY}for sample in $(seq {settings.samples}); do\n  {lines}\ndone"


def parse(output: str) -> tuple[dict[str, Samples], str]:
    """Return up- and download in MB/s, and `speedtest` or `iperf3`. Raises SlurmError without both of them."""
    for which, read in (("speedtest", _of_speedtest), ("iperf3", _of_iperf)):
        found = collect(pair for report in _reports(output) for pair in read(report))
        if found.keys() == {UPLOAD, DOWNLOAD}:
            return found, which
    raise SlurmError("The output has no report of an upload and a download.")


def versions(output: str) -> dict[str, str]:
    """Return the version of iperf3, if a report names it."""
    for report in _reports(output):
        start = report.get("start")
        version = start.get("version") if isinstance(start, Mapping) else None
        if isinstance(version, str):
            return {"iperf3": version[:40].removeprefix("iperf ")}
    return {}


def _reports(output: str) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON objects of the output that begin a line, perhaps between other lines."""
    decoder, at, count = json.JSONDecoder(), 0, 0
    beginning = re.compile(r"^\{", re.MULTILINE)
    while count < 3 * MOST_SAMPLES and (found := beginning.search(output, at)):
        count += 1
        try:
            report, at = decoder.raw_decode(output, found.start())
        except (ValueError, RecursionError):
            at = found.end()
            continue
        if isinstance(report, Mapping):
            yield report


def _of_speedtest(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the rates of Ookla's report, which has bytes per second; of speedtest-cli's, which has bits per second."""
    for key, way in ((UPLOAD, "upload"), (DOWNLOAD, "download")):
        match report.get(way):
            case {"bandwidth": int() | float() as rate}:
                yield key, f"{_megabytes(rate)}"
            case int() | float() as rate if "ping" in report:
                yield key, f"{_megabytes(rate) / BITS_PER_BYTE}"


def _of_iperf(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the rate that the receiver saw. With -R, the server sends: a download."""
    match report:
        case {
            "start": {"test_start": {"reverse": reverse}},
            "end": {"sum_received": {"bits_per_second": int() | float() as rate}},
        } if "error" not in report:
            yield (DOWNLOAD if reverse else UPLOAD), f"{_megabytes(rate) / BITS_PER_BYTE}"


def _megabytes(count: float) -> float:
    return float(count) / BYTES_PER_MB if abs(count) < LARGEST else 0.0
