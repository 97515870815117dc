"""The speed of a cluster for a kind of job, from the benchmark labels. Pure.

A job that asks for GPUs is of the kind `gpu`: GFLOPS per GPU count, where the benchmark ran on GPUs. Other jobs of
several tasks are `parallel`: the geometric mean of GFLOPS per CPU and MB/s between two nodes counts. The rest is
`serial`: GFLOPS per CPU count.
"""

from __future__ import annotations

import math

from deepgrid.lifecycle.job import JobDefinition, Provider

GFLOPS, BENCHMARK, BANDWIDTH = "compute.gflops", "compute.benchmark", "network.p2p.bw.mbps"
ON_GPUS = ("hpl-mxp", "hpl-gpu")
LARGEST = 1e12


def kind_of(definition: JobDefinition) -> str:
    """Return the kind of a job: `gpu`, `parallel` or `serial`."""
    if definition.gpus:
        return "gpu"
    return "parallel" if definition.ntasks > 1 else "serial"


def measured_speeds(provider: Provider) -> dict[str, float]:
    """Return the provider's speed per kind of job. A kind without usable labels is missing."""
    labels = {label.key: label.value for label in provider.labels}
    gflops, bandwidth = _figure(labels.get(GFLOPS, "")), _figure(labels.get(BANDWIDTH, ""))
    on_gpus = labels.get(BENCHMARK, "").startswith(ON_GPUS)
    units = sum(provider.hardware.gpus_per_node if on_gpus else provider.hardware.cpus_per_node)
    if not gflops or not units:
        return {}
    if on_gpus:
        return {"gpu": gflops / units}
    speeds = {"serial": gflops / units}
    if bandwidth:
        speeds["parallel"] = math.sqrt(gflops / units * bandwidth)
    return speeds


def _figure(text: str) -> float:
    """Return a positive number of a plausible size, otherwise 0. Labels of strangers may hold anything."""
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if 0 < value < LARGEST else 0.0
