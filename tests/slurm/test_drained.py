"""Real nodes that an administrator takes out: what can run is offered, the rest is explained, and it comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from deepgrid.errors import SlurmError
from deepgrid.findings import Finding, Level
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.setup.checkup import examine
from deepgrid.slurm.ssh.login import Login
from tests.slurm.support import WAIT_S, Box, resume_nodes

Update = Callable[..., None]


@pytest.fixture
def update(box: Box) -> Iterator[Update]:
    """Change the state of nodes. After the test all of them take jobs again."""

    def change(state: str, nodes: str = "unit-n[1-2]", reason: str = "new firmware") -> None:
        box.slurm("scontrol", "update", f"nodename={nodes}", f"state={state}", f"reason={reason}")

    yield change
    resume_nodes(box)


async def usable(cluster: Cluster) -> int:
    return (await cluster.partition()).usable.nodes


async def slurm_findings(box: Box, cluster: Cluster) -> dict[str, Finding]:
    login = Login(box.settings)
    try:
        return {finding.subject: finding for finding in await examine(login, cluster)}
    finally:
        await login.close()


@pytest.mark.situation(
    "nodes", "all nodes are drained for maintenance",
    "nothing is claimed; doctor, the health page and Prefect show the reason text; the cluster comes back by itself",
)  # fmt: skip
async def test_a_cluster_whose_nodes_are_drained_says_why_and_comes_back(
    box: Box, cluster: Cluster, update: Update
) -> None:
    update("drain")
    with pytest.raises(SlurmError, match=r"No node of the partition main can run a job: 2 drained.*\(new firmware\)"):
        await cluster.health()
    finding = (await slurm_findings(box, cluster))["slurm"]
    assert (finding.level, "2 drained" in finding.words) == (Level.BAD, True)
    assert finding.next_step == "Jobs are claimed again when a node takes jobs."
    update("resume")
    async with asyncio.timeout(WAIT_S):
        while await usable(cluster) != 2:
            await asyncio.sleep(0.1)
    assert await cluster.health() == (2, 2)


@pytest.mark.situation(
    "nodes", "one of two nodes is drained", "doctor says how many can run jobs, and why the other one cannot",
)  # fmt: skip
async def test_a_cluster_with_one_node_left_goes_on(box: Box, cluster: Cluster, update: Update) -> None:
    update("drain", "unit-n2", "fan | of rack 3, State=IDLE")
    assert await cluster.health() == (1, 2)
    finding = (await slurm_findings(box, cluster))["slurm"]
    assert finding.level is Level.WARNING
    assert "1 of 2 nodes can run jobs. The others: 1 drained" in finding.words
    assert "(fan | of rack 3, State=IDLE)" in finding.words


@pytest.mark.situation("nodes", "a node is down", "it is not counted as usable")
async def test_a_node_that_is_marked_as_failing_is_not_usable(cluster: Cluster, update: Update) -> None:
    update("fail", "unit-n1", "bad memory")
    assert await cluster.health() == (1, 2)


@pytest.mark.situation("nodes", "the partition is closed", "nothing is claimed, and the error names its state")
@pytest.mark.usefixtures("held")
async def test_a_partition_that_is_down_takes_no_jobs(cluster: Cluster) -> None:
    with pytest.raises(SlurmError, match=r"The partition main is down\."):
        await cluster.health()


@pytest.mark.situation("nodes", "the partition of the login block does not exist", "Slurm's own words say so")
async def test_a_partition_that_does_not_exist_is_named(box: Box, login: Login) -> None:
    with pytest.raises(SlurmError, match=r"Slurm refused: Partition nosuch not found\."):
        await Cluster(login, replace(box.settings, partition="nosuch")).health()
