"""The benchmark programs as jobs on a real cluster."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from deepgrid.benchmark.outcome import Outcome
from deepgrid.benchmark.settings import BenchmarkSettings, Program
from deepgrid.errors import SlurmError
from deepgrid.provider.measurements import measure
from deepgrid.provider.session import ProviderSession
from deepgrid.sbatch import StoragePaths
from deepgrid.slurm.cluster import Cluster
from tests.slurm.support import Box

# Both nodes are this machine, so one rank runs on each, over loopback.
SMALL = BenchmarkSettings(
    hpl_seconds=1,
    gflops_per_cpu=0.01,
    block_size=32,
    cpus_per_rank=8,
    fio_size_mb=8,
    fio_seconds=0.1,
    volumes=("scratch", "disk-tmp"),
    mpi_options="--allow-run-as-root --bind-to none --mca pml ob1 --mca btl self,tcp --mca btl_tcp_if_include lo"
    " --mca oob_tcp_if_include lo --mca mpi_yield_when_idle 1",
    time_limit_minutes=5,
    wait_minutes=5,
)


@pytest.fixture
def storage(box: Box) -> Iterator[StoragePaths]:
    """Volumes as a provider creates them."""
    with tempfile.TemporaryDirectory(prefix="dg-volumes-") as root:
        Path(root).chmod(0o755)
        paths = StoragePaths.under(root)
        for folder in paths.roots:
            Path(folder).mkdir()
            Path(folder).chmod(0o1777)
        yield paths


async def measured(cluster: Cluster, storage: StoragePaths, program: Program) -> Outcome:
    settings = SimpleNamespace(cluster="unit", storage=storage, benchmarks=SMALL)
    return await measure(cast(ProviderSession, SimpleNamespace(settings=settings, cluster=cluster)), program)


def figures(outcome: Outcome) -> dict[str, float]:
    return {label.key: float(label.value) for label in outcome.labels}


async def test_nodes_report_their_hardware(cluster: Cluster, storage: StoragePaths) -> None:
    outcome = await measured(cluster, storage, "machine")
    assert {"arch", "cpu.microarch", "os"} <= {label.key for label in outcome.labels}


async def test_ranks_on_two_nodes_play_ping_pong(cluster: Cluster, storage: StoragePaths) -> None:
    outcome = await measured(cluster, storage, "network")
    assert figures(outcome).keys() == {
        "network.p2p.bw.mbps",
        "network.p2p.latency.us",
        "network.all-to-all.latency.us",
        "network.p2p.latency.1b.us",
        "network.all-to-all.latency.8b.us",
    }
    assert all(value > 0 for value in figures(outcome).values())


async def test_a_missing_volume_fails_alone(cluster: Cluster, storage: StoragePaths) -> None:
    Path(storage.disk_tmp).rmdir()
    outcome = await measured(cluster, storage, "storage")
    assert len(outcome.labels) == 4
    assert all(label.key.startswith("storage.scratch.") for label in outcome.labels)
    assert all(value > 0 for value in figures(outcome).values())
    assert "disk-tmp: mktemp: failed" in outcome.problem
    assert list(Path(storage.job).iterdir()) == []


async def test_no_volume_at_all_is_a_failure(cluster: Cluster, storage: StoragePaths) -> None:
    for folder in (storage.disk_tmp, storage.job):
        Path(folder).rmdir()
    with pytest.raises(SlurmError, match="No volume could be measured"):
        await measured(cluster, storage, "storage")


@pytest.mark.long
async def test_hpl_solves_its_problem_on_all_nodes(cluster: Cluster, storage: StoragePaths) -> None:
    outcome = await measured(cluster, storage, "hpl")
    labels = {label.key: label.value for label in outcome.labels}
    assert labels.keys() == {"compute.gflops", "compute.benchmark"}
    assert float(labels["compute.gflops"]) > 0
    assert labels["compute.benchmark"] == "hpl"
