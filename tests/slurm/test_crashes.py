"""Kills of controller and nodes. A forgotten job is lost. For a job that ran twice, the first end counts.

A controller saves its state every few seconds. To repeat a kill in between, the tests replace its saved state with an
earlier one while it is dead.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase, SlurmJob
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.observe.run_records import CLOCK_SKEW_S
from deepgrid.slurm.observe.verdict import ABSENT_BUT_ACCOUNTED, SUDDENLY_EMPTY, Verdicts, VerdictSettings
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from tests.slurm.losing import lose_state
from tests.slurm.support import SMALL, WAIT_FOR_LEAVE, Box, bash, by_accounting, ended, ends, leave, new_key, until

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]
LONG_S = 180.0
A_WHILE = VerdictSettings(empty_queue_s=20.0)  # the time for a controller to come back with its state


class SavedState:
    """The controller's saved state, which a test can copy and put back."""

    def __init__(self, box: Box, kept: Path) -> None:
        self._box = box
        self._kept = kept
        self.folder = Path(box.settings.grid_root).parent / "slurmctld"

    async def keep(self, *keys: JobKey) -> None:
        """Copy the state when it contains these jobs and no save is under way."""
        deadline = time.monotonic() + LONG_S
        while not (self._holds(keys) and await self._copied()):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.2)

    def _holds(self, keys: Sequence[JobKey]) -> bool:
        state = self.folder / "job_state"
        return state.exists() and all(key.comment.encode() in state.read_bytes() for key in keys)

    async def _copied(self) -> bool:
        """Return whether the state was copied while no file changed. The controller saves the files one by one."""
        with suppress(shutil.Error, FileNotFoundError):
            before = self._files()
            await asyncio.sleep(1)
            shutil.rmtree(self._kept, ignore_errors=True)
            shutil.copytree(self.folder, self._kept)
            return self._files() == before
        return False

    def _files(self) -> list[tuple[str, int]]:
        return sorted((entry.name, entry.stat().st_mtime_ns) for entry in os.scandir(self.folder))

    def lose(self, *, all_of_it: bool = False) -> None:
        """Kill the controller and start it with the copied state, or with none."""
        lose_state(self._box.site, self._box.table, self._box.name, None if all_of_it else self._kept)


@pytest.fixture
def saved(box: Box, tmp_path: Path) -> SavedState:
    return SavedState(box, tmp_path / "state")


async def records(box: Box, key: JobKey, count: int) -> None:
    """Wait until the completion hook wrote this number of records of the claim."""
    spool = Path(box.settings.grid_root) / "spool"
    deadline = time.monotonic() + LONG_S
    while sum(key.comment in file.read_text() for file in spool.glob("[0-9]*")) < count:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.2)


async def becomes(monitor: SlurmMonitor, key: JobKey, wanted: Callable[[SlurmJob], bool]) -> SlurmJob:
    """Like `until`, with a longer timeout."""
    async with asyncio.timeout(LONG_S):
        while not wanted(job := monitor.observe(key)):
            await monitor.changed(key, job, 5)
    return job


async def test_a_job_that_runs_twice_ended_when_it_ended_first(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey, saved: SavedState, held: Callable[[], None]
) -> None:
    """The controller is killed before it saves the job's end. It starts the job again, and the guard refuses."""
    await cluster.submit(key, bash("echo ran; exit 3"), SMALL)
    await saved.keep(key)
    held()
    end = await ended(monitor, key)
    while time.time() < (end.ended_at or 0) + CLOCK_SKEW_S + 1:
        await asyncio.sleep(0.2)
    saved.lose()
    held()
    await records(box, key, 2)
    assert await ends(cluster, key) == {key: end}
    assert (await cluster.read_output({key: 0}))[key].count(b"ran\n") == 1
    await cluster.acknowledge(key)
    assert await ends(cluster, key) == {key: end}, "a later query has the same result"


@pytest.mark.deep
async def test_a_job_that_the_controller_forgot_is_lost_though_its_id_is_used_again(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey, saved: SavedState
) -> None:
    """Accounting would show it as running forever, and the next job gets its id."""
    before, other = new_key(), new_key()
    await cluster.submit(before, bash("true"), SMALL)
    await saved.keep(before)
    forgotten = await cluster.submit(key, bash("sleep 600"), SMALL)
    monitor.watch(key)
    await until(monitor, key, Phase.RUNNING)
    saved.lose()
    await becomes(monitor, key, lambda job: job.phase is Phase.ABSENT)  # whether accounting knows the job or not
    assert (await cluster.submit(other, bash("exit 3"), SMALL)).slurm_id == forgotten.slurm_id
    assert (await ended(monitor, other)).exit_status == 768
    assert monitor.observe(key).phase is Phase.ABSENT
    assert not (await cluster.snapshot([key])).ended(key)


async def test_a_controller_without_its_state_proves_nothing_for_a_while_then_the_job_is_lost(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey, saved: SavedState
) -> None:
    """When it is back, accounting shows the job as cancelled without a user. Such an end is not paid."""
    cluster.verdicts = Verdicts(A_WHILE)
    await cluster.submit(key, bash("sleep 600"), SMALL)
    monitor.watch(key)
    await until(monitor, key, Phase.RUNNING)
    saved.lose(all_of_it=True)
    await becomes(monitor, key, lambda job: job in (SUDDENLY_EMPTY, ABSENT_BUT_ACCOUNTED))
    lost = await becomes(monitor, key, lambda job: job.phase in (Phase.ABSENT, Phase.ENDED))
    assert lost.phase is Phase.ABSENT


async def test_a_state_that_is_found_again_within_the_minute_loses_no_job(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey, saved: SavedState, held: Callable[[], None]
) -> None:
    await cluster.submit(key, bash("exit 3"), SMALL)
    await saved.keep(key)
    monitor.watch(key)
    await until(monitor, key, Phase.QUEUED)
    saved.lose(all_of_it=True)
    await becomes(monitor, key, lambda job: job in (SUDDENLY_EMPTY, ABSENT_BUT_ACCOUNTED))
    saved.lose()
    assert (await becomes(monitor, key, lambda job: job.phase is not Phase.UNKNOWN)).phase is Phase.QUEUED
    held()
    assert (await until(monitor, key, Phase.ENDED)).exit_status == 768


@pytest.mark.deep
async def test_a_node_that_dies_while_its_job_lives_on_ends_the_job_once(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey
) -> None:
    """The job's process survives slurmd and may report its completion later, after the job failed with its node."""
    await cluster.submit(key, bash(WAIT_FOR_LEAVE), SMALL)
    monitor.watch(key)
    await until(monitor, key, Phase.RUNNING)
    node = box.slurm("squeue", "-h", "-n", key.name, "-o", "%N").strip()
    box.table.stop(node, signal.SIGKILL)
    end = await becomes(monitor, key, lambda job: job.phase is Phase.ENDED)
    assert end.state == "NODE_FAIL"
    leave(box, key)
    box.start()
    assert await ends(cluster, key) == {key: end}
    assert (await by_accounting(cluster, key)).state == "NODE_FAIL"


async def test_a_job_that_waits_beyond_a_deadline_of_the_site_never_starts(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey
) -> None:
    """Slurm requires a deadline after the time limit, here a minute, and checks it when it schedules."""
    ahead = new_key()
    await cluster.submit(ahead, bash("sleep 600"), replace(SMALL, ntasks=2, cpus_per_task=8))
    submission = await cluster.submit(
        key, bash("true"), replace(SMALL, ntasks=2, cpus_per_task=8, time_limit_minutes=1)
    )
    box.slurm("scontrol", "update", f"JobId={submission.slurm_id}", "Deadline=now+75seconds")
    monitor.watch(key)
    end = await becomes(monitor, key, lambda job: job.phase is Phase.ENDED)
    assert (end.state, end.started_at) == ("DEADLINE", None)
    await cluster.cancel(ahead)
