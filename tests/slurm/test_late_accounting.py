"""A site with accounting and without the completion hook: an end is known before accounting reports it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deployments.onemachine.slurm import ClusterSpec
from tests.slurm.support import (
    SMALL,
    WAIT_FOR_LEAVE,
    Box,
    bash,
    by_accounting,
    ended,
    hand_over,
    leave,
    new_key,
    running_box,
    until,
)

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    with running_box(ClusterSpec("late", nodes=1, cpus_per_node=8, hook=False)) as box:
        yield box


async def test_an_end_during_an_outage_of_accounting_is_known_from_the_controller(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey, stop: Callable[[str], None]
) -> None:
    """After an outage, accounting first shows FAILED at an unknown time for any job. That is not an end."""
    absent = new_key()
    hand_over(box, absent)
    await cluster.submit(key, bash(f"{WAIT_FOR_LEAVE}; exit 3"), SMALL)
    for each in (key, absent):
        monitor.watch(each)
    running = await until(monitor, key, Phase.RUNNING)
    stop("slurmdbd")
    leave(box, key)
    end = await until(monitor, key, Phase.ABSENT, Phase.ENDED)
    assert (end.state, end.exit_status, end.started_at) == ("FAILED", 768, running.started_at)
    assert end.ended_at is not None
    await until(monitor, absent, Phase.UNKNOWN)  # at the next query to accounting
    box.start()
    assert await by_accounting(cluster, key) == end
    assert (await until(monitor, absent, Phase.ABSENT)).phase is Phase.ABSENT


# The outage of slurmdbd is deep: this one ends at the same code, and the test above has such an outage.
@pytest.mark.parametrize("daemon", [pytest.param("slurmdbd", marks=pytest.mark.deep), "mariadbd"])
async def test_accounting_shows_no_end_without_its_start_after_an_outage_that_holds_a_whole_run(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey, stop: Callable[[str], None], daemon: str
) -> None:
    """Such a job would be settled as if it never ran, for 0 minutes."""
    stop(daemon)
    await cluster.submit(key, bash("exit 3"), SMALL)
    end = await ended(monitor, key)
    assert (end.state, end.exit_status) == ("FAILED", 768)
    assert end.started_at is not None
    box.start()
    assert await by_accounting(cluster, key) == end
