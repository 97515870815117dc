"""Final states of a real Slurm for jobs that the cluster ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from deepgrid.lifecycle.ends import is_fault
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deployments.onemachine.slurm import ClusterSpec
from tests.slurm.support import SMALL, Box, bash, by_accounting, new_key, running_box, until

pytestmark = pytest.mark.long  # a separate cluster with another configuration

PREEMPTING = """
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
PartitionName=urgent Nodes=ALL MaxTime=INFINITE DefaultTime=10 State=UP PriorityTier=10 DefMemPerCPU=100
"""


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    """A cluster with one node of one CPU, and a partition that preempts the others."""
    with running_box(ClusterSpec("ends", nodes=1, cpus_per_node=1)) as box:
        controller = next(daemon for daemon in box.site.daemons() if daemon.name == "ends-slurmctld")
        box.table.stop(controller.name)
        with open(box.site.environment("ends")["SLURM_CONF"], "a") as conf:
            conf.write(PREEMPTING)
        box.table.start(controller)
        box.table.wait_ready(controller)
        yield box


async def running(cluster: Cluster, monitor: SlurmMonitor) -> JobKey:
    key = new_key()
    await cluster.submit(key, bash("sleep 600"), SMALL)
    monitor.watch(key)
    await until(monitor, key, Phase.RUNNING)
    return key


async def test_a_preempted_job_is_the_clusters_fault(box: Box, cluster: Cluster, monitor: SlurmMonitor) -> None:
    key = await running(cluster, monitor)
    account = box.settings.job_account or box.settings.user
    box.slurm("sbatch", f"--uid={account}", f"--gid={account}", "-p", "urgent", "--output=/dev/null", "--wrap=true")
    end = await until(monitor, key, Phase.ENDED)
    assert end.state == "PREEMPTED"
    assert is_fault((await by_accounting(cluster, key)).state)


async def test_a_job_on_a_node_that_goes_down_is_the_clusters_fault(
    box: Box, cluster: Cluster, monitor: SlurmMonitor
) -> None:
    key = await running(cluster, monitor)
    box.slurm("scontrol", "update", "nodename=ALL", "state=down", "reason=power")
    end = await until(monitor, key, Phase.ENDED)
    assert end.state == "NODE_FAIL"
    box.slurm("scontrol", "update", "nodename=ALL", "state=resume", check=False)  # the node may be back already
    assert (await by_accounting(cluster, key)).state == "NODE_FAIL"
