"""A site with neither completion hook nor accounting: the controller's memory shows how jobs ended."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deployments.onemachine.slurm import ClusterSpec
from tests.slurm.support import SMALL, WAIT_FOR_LEAVE, Box, bash, ended, ends, leave, new_key, running_box, until


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    spec = ClusterSpec("bare", nodes=1, cpus_per_node=8, hook=False, accounting=False)
    with running_box(spec) as box:
        yield box


async def test_ends_are_known_and_an_unknown_claim_is_absent(box: Box, cluster: Cluster, monitor: SlurmMonitor) -> None:
    endings = {
        "exit 3": ("FAILED", 768, ""),
        "kill -9 $$": ("FAILED", 9, ""),
        "true": ("COMPLETED", 0, ""),
    }
    keys = {new_key(): body for body in endings}
    for key, body in keys.items():
        await cluster.submit(key, bash(f"{WAIT_FOR_LEAVE}; {body}"), SMALL)
        monitor.watch(key)
    running = {key: await until(monitor, key, Phase.RUNNING) for key in keys}
    for key in keys:
        leave(box, key)
    for key, body in keys.items():
        end = await until(monitor, key, Phase.ENDED, Phase.ABSENT)
        assert (end.state, end.exit_status, end.reason) == endings[body]
        assert end.started_at == running[key].started_at
        assert end.ended_at is not None
    assert (await ends(cluster, *keys)).keys() == keys.keys()
    absent = new_key()
    monitor.watch(absent)
    await until(monitor, absent, Phase.ABSENT)


async def test_an_ended_job_whose_submission_answer_was_lost_is_found(
    box: Box, cluster: Cluster, monitor: SlurmMonitor
) -> None:
    """Otherwise a second sbatch would follow, the guard would refuse its start, and the run would never be paid."""
    key = new_key()
    first = await cluster.submit(key, bash("true"), SMALL)
    await ended(monitor, key)
    (box.folder(key) / "id").unlink()
    again = await cluster.submit(key, bash("true"), SMALL)
    assert (again.slurm_id, again.adopted) == (first.slurm_id, True)


async def test_a_cancelled_job_ends_with_and_without_a_start(box: Box, cluster: Cluster, monitor: SlurmMonitor) -> None:
    waiting, running = new_key(), new_key()
    await cluster.submit(running, bash("sleep 600"), SMALL)
    monitor.watch(running)
    await until(monitor, running, Phase.RUNNING)
    box.slurm("scontrol", "update", f"PartitionName={box.settings.partition}", "State=DOWN")
    await cluster.submit(waiting, bash("true"), SMALL)
    for key in (waiting, running):
        await cluster.cancel(key)
    for key in (waiting, running):
        end = await ended(monitor, key)
        assert (end.state, end.started_at is None) == ("CANCELLED", key == waiting)
    box.slurm("scontrol", "update", f"PartitionName={box.settings.partition}", "State=UP")
