"""A job that exceeds its time limit ends as TIMEOUT. Slurm counts minutes and checks every half minute."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from tests.slurm.support import SMALL, bash, until


@pytest.mark.deep
async def test_a_job_past_its_limit_times_out(cluster: Cluster, monitor: SlurmMonitor, key: JobKey) -> None:
    await cluster.submit(key, bash("sleep 600"), replace(SMALL, time_limit_minutes=1))
    monitor.watch(key)
    running = await until(monitor, key, Phase.RUNNING)
    await monitor.changed(key, running, 120)
    end = await until(monitor, key, Phase.ENDED)
    assert end.state == "TIMEOUT"
    assert end.started_at is not None
    assert end.ended_at is not None
    assert 60 <= end.ended_at - end.started_at < 120
