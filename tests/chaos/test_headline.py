"""Many jobs end while their supervisor is down. All are settled correctly within a minute of its start.

A comparable system tries each report three times for 15 s with pauses of 3 s. After that it loses the job's pay.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import time

import pytest

from deepgrid.lifecycle.states import JobStatus
from tests.chaos.batch import PATIENCE_S, Batch
from tests.chaos.judge import judge, said_by
from tests.chaos.world import World
from tests.grid.operator_settings import assigned_at_once

pytestmark = [pytest.mark.deep, pytest.mark.timeout(1800), pytest.mark.asyncio(loop_scope="package")]

JOBS = [40, 100]
OLD_RETRIES_S = 3 * 15 + 2 * 3
SETTLED_WITHIN_S = 60.0  # on an idle machine
ROOM = 5  # for slow processors and parallel tests


@pytest.mark.parametrize("count", JOBS)
async def test_jobs_that_end_while_the_supervisor_is_down_are_settled_within_a_minute(
    world: World, seed: int, count: int
) -> None:
    async with assigned_at_once(world.grid), Batch(world, random.Random(seed)) as batch:
        jobs = await batch.submit(["held"] * count)
        await in_slurm_are(world, count)
        await batch.until(lambda job: job.status is JobStatus.RUNNING, jobs)
        await world.supervisor.kill()
        down_since = time.monotonic()
        batch.open()
        await in_slurm_are(world, 0)
        assert [(job.id, said_by(world, job.id)) for job in batch.latest.values() if job.status.cold] == []
        await asyncio.sleep(max(0.0, down_since + OLD_RETRIES_S - time.monotonic()))  # longer than those retries
        world.supervisor.start()
        await batch.until(lambda job: job.status.cold, jobs, count=count)
        assert time.monotonic() - world.supervisor.started_at < ROOM * SETTLED_WITHIN_S
        assert all(batch.latest[job_id].status is JobStatus.FINISHED for job_id in jobs)
        assert not await judge(world, batch, ())


async def in_slurm_are(world: World, count: int) -> None:
    """Wait until this number of the grid's jobs wait or run in Slurm."""
    env = {**os.environ, **world.grid.slurm.environment(world.cluster)}
    deadline = time.monotonic() + 2 * PATIENCE_S
    while (found := await asyncio.to_thread(_in_slurm, env)) != count:
        assert time.monotonic() < deadline, f"{found} jobs are in Slurm"
        await asyncio.sleep(0.3)


def _in_slurm(env: dict[str, str]) -> int:
    argv = ["squeue", "-h", "-a", "-t", "PENDING,RUNNING,COMPLETING", "-o", "%A"]
    return len(subprocess.run(argv, env=env, capture_output=True, text=True, check=True, timeout=60).stdout.split())
