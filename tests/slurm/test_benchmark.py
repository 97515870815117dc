"""The benchmark programs as jobs on a real cluster."""

from __future__ import annotations

import asyncio
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import cast

import pytest

from deepgrid.benchmark import hpl, measuring
from deepgrid.benchmark.measuring import Site
from deepgrid.benchmark.outcome import Outcome
from deepgrid.benchmark.settings import BenchmarkSettings, Program
from deepgrid.errors import SlurmError
from deepgrid.lifecycle.job import Label
from deepgrid.provider.measurements import measure
from deepgrid.provider.session import ProviderSession
from deepgrid.sbatch import Containers, StoragePaths
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.submit.batch import BatchJobs, BatchSettings
from tests.slurm.support import Box, iperf3_server, resume_nodes
from tests.waiting import until

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


async def measured(
    cluster: Cluster, storage: StoragePaths, program: Program, benchmarks: BenchmarkSettings = SMALL
) -> Outcome:
    settings = SimpleNamespace(cluster="unit", storage=storage, benchmarks=benchmarks, containers=Containers())
    return await measure(cast(ProviderSession, SimpleNamespace(settings=settings, cluster=cluster)), program)


def figures(outcome: Outcome) -> dict[str, float]:
    return {key: one.value for key, one in outcome.evidence.samples.items()}


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
    assert all(len(one.values) == 3 for one in outcome.evidence.samples.values())
    assert "network.benchmark" in {label.key for label in outcome.labels}
    assert outcome.evidence.parameters["version of mpirun"][0].isdigit()


async def test_a_missing_volume_fails_alone(cluster: Cluster, storage: StoragePaths) -> None:
    Path(storage.disk_tmp).rmdir()
    outcome = await measured(cluster, storage, "storage")
    assert len(figures(outcome)) == 4
    assert all(key.startswith("storage.scratch.") for key in figures(outcome))
    assert Label("storage.benchmark", "fio") in outcome.labels
    assert "disk-tmp: mktemp: failed" in outcome.problem
    assert list(Path(storage.job).iterdir()) == []


async def test_no_volume_at_all_is_a_failure(cluster: Cluster, storage: StoragePaths) -> None:
    for folder in (storage.disk_tmp, storage.job):
        Path(folder).rmdir()
    with pytest.raises(SlurmError, match="No volume could be measured"):
        await measured(cluster, storage, "storage")


@pytest.fixture
def iperf3_port() -> Iterator[int]:
    """The port of a real iperf3 server."""
    with iperf3_server() as port:
        yield port


async def test_iperf3_measures_both_directions(cluster: Cluster, storage: StoragePaths, iperf3_port: int) -> None:
    settings = replace(SMALL, samples=1, iperf3_server="127.0.0.1", iperf3_port=iperf3_port, iperf3_seconds=1)
    outcome = await measured(cluster, storage, "internet", settings)
    assert figures(outcome).keys() == {"network.upload.bw.mbps", "network.download.bw.mbps"}
    assert min(figures(outcome).values()) > 0
    assert Label("network.internet.benchmark", "iperf3") in outcome.labels
    assert outcome.evidence.parameters["server"] == f"127.0.0.1:{iperf3_port}"
    assert outcome.evidence.parameters["version of iperf3"][0].isdigit()


async def test_iperf3_waits_for_a_busy_server(cluster: Cluster, storage: StoragePaths, iperf3_port: int) -> None:
    address = ["iperf3", "-c", "127.0.0.1", "-p", str(iperf3_port), "-t", "3", "--forceflush"]
    with subprocess.Popen(address, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        while "connected to" not in (line := other.stdout.readline()):
            assert line, "the other client ended"
        settings = replace(SMALL, samples=1, iperf3_server="127.0.0.1", iperf3_port=iperf3_port, iperf3_seconds=1)
        outcome = await measured(cluster, storage, "internet", settings)
    assert min(figures(outcome).values()) > 0


@pytest.fixture
def drained(box: Box) -> Iterator[None]:
    """One of the two nodes takes no jobs."""
    box.slurm("scontrol", "update", "NodeName=unit-n2", "State=DRAIN", "Reason=test")
    yield
    resume_nodes(box)


@pytest.mark.situation(
    "nodes", "a benchmark is due while one of two nodes is drained",
    "it measures the node that is left, and its result names how many took no part",
)  # fmt: skip
@pytest.mark.usefixtures("drained")
async def test_a_drained_node_takes_no_part(cluster: Cluster, login: Login, storage: StoragePaths, box: Box) -> None:
    outcome = await measured(cluster, storage, "network")
    assert outcome == Outcome("network"), "one node is left, which has no network to measure"
    assert (await cluster.hardware()).nodes == 1
    assert (await cluster.hardware(usable_only=False)).nodes == 2
    cluster.batch = BatchJobs(login, box.settings, BatchSettings(end_grace_s=-58))
    everything = replace(SMALL, unresponsive=True, wait_minutes=0, time_limit_minutes=1)
    with pytest.raises(SlurmError, match="did not end within 1 minutes"):  # it waits for the drained node, too
        await measured(cluster, storage, "network", everything)


async def test_a_job_that_somebody_ends_is_no_measurement(cluster: Cluster, storage: StoragePaths, box: Box) -> None:
    slow = replace(SMALL, python="sleep 300; true")
    job = asyncio.create_task(measured(cluster, storage, "network", slow))
    name = "deepgrid-benchmark-unit-network"
    await until(lambda: box.slurm("squeue", "-h", "-n", name, "-t", "R", "-o", "%A"))
    box.slurm("scancel", "-n", name)
    with pytest.raises(SlurmError, match="ended CANCELLED"):
        await job


async def test_slurm_and_mpirun_get_what_the_settings_say(cluster: Cluster, storage: StoragePaths, box: Box) -> None:
    """A recorder takes the place of mpirun. It prints its arguments and the nodes that Slurm gave the job."""
    settings = BenchmarkSettings(ucx=True, affinities=("mlx5_0:1",), transport="rc,self", samples=1)
    recorder = Path(storage.job) / "mpirun"
    recorder.write_text('#!/bin/sh\necho "$SLURM_JOB_NUM_NODES nodes: $*"\n')
    recorder.chmod(0o755)
    request = measuring.request("network", Site(await cluster.hardware(), storage), settings)
    assert request is not None
    script = request.script.replace("\n", f"\nPATH={storage.job}:/usr/bin:/bin\n", 1)
    said = await cluster.batch.run("deepgrid-recorder", script, request.options, limit_minutes=1, wait_minutes=1)
    wanted = "--mca pml ucx -x UCX_NET_DEVICES=mlx5_0:1 -x UCX_TLS=rc,self -n 2 --map-by ppr:1:node"
    assert f"2 nodes: {wanted} /usr/bin/python3 pingpong.py" in said


@pytest.mark.long
async def test_hpl_in_single_node_mode_adds_the_rates_of_all_nodes(cluster: Cluster, storage: StoragePaths) -> None:
    outcome = await measured(cluster, storage, "hpl", replace(SMALL, single_node=True))
    assert outcome.evidence.parameters["nodes"] == "2, each alone"
    assert outcome.evidence.output.count("deepgrid-node unit-n") == 2
    assert len(outcome.evidence.samples["compute.gflops"].values) == 3


@pytest.mark.long
async def test_hpl_solves_its_problem_on_all_nodes(cluster: Cluster, storage: StoragePaths) -> None:
    outcome = await measured(cluster, storage, "hpl")
    labels = {label.key: label.value for label in outcome.labels}
    assert labels.keys() - {"compute.remark"} == {"compute.gflops", "compute.benchmark"}
    assert outcome.evidence.parameters.keys() >= {"N", "NB", "P x Q", "version of hpl", "version of mpirun"}
    assert len(outcome.evidence.samples["compute.gflops"].values) == 3
    assert float(labels["compute.gflops"]) > 0
    assert labels["compute.benchmark"] == "hpl"

    problem = hpl.problem_for(await cluster.hardware(), SMALL)
    by_hand = f"#!/bin/bash\nset -e\nprintf %s {shlex.quote(problem.input_file())} > hpccinf.txt\n"
    by_hand += f"mpirun {SMALL.mpi_options} -n {problem.p * problem.q} hpcc\ngrep -E '^WR|PASSED' hpccoutf.txt"
    said = await cluster.batch.run("hpl-by-hand", by_hand, hpl.options(problem), limit_minutes=5, wait_minutes=5)
    rates = [float(line.split()[-1]) for line in said.splitlines() if line.startswith("WR")]
    assert len(rates) == 3
    measured_rates = outcome.evidence.samples["compute.gflops"]
    if max(rates) / min(rates) < 1.2 and not outcome.evidence.noisy:  # other load on this machine proves nothing
        assert measured_rates.value == pytest.approx(median(rates), rel=0.25)
