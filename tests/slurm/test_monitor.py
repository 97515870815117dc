"""The states that the monitor shows during a job's life, during outages, and for claims that Slurm does not know."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from deepgrid.errors import SlurmUnreachable
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import ABSENT, UNKNOWN, Phase
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.observe.verdict import UNREAD
from deepgrid.slurm.ssh.channel import CommandResult
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from tests.slurm.support import SMALL, WAIT_FOR_LEAVE, WAIT_S, Box, bash, ended, hand_over, leave, new_key, until


async def test_the_life_of_a_job_that_exits_3(box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey) -> None:
    assert monitor.observe(key) == UNKNOWN
    monitor.watch(key)
    assert await until(monitor, key, Phase.ABSENT) == ABSENT
    submission = await cluster.submit(key, bash(f"{WAIT_FOR_LEAVE}; exit 3"), SMALL)
    running = await until(monitor, key, Phase.RUNNING)
    leave(box, key)
    end = await until(monitor, key, Phase.ENDED)
    assert running.slurm_id == end.slurm_id == submission.slurm_id
    assert (end.state, end.exit_status) == ("FAILED", 768)
    assert running.started_at == end.started_at
    assert end.started_at is not None
    assert end.ended_at is not None
    assert 0 <= end.ended_at - end.started_at < 60  # whole seconds: a short job may begin and end in one


async def test_a_job_that_the_supervisor_or_another_user_cancels(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey
) -> None:
    other = new_key()
    for each in (key, other):
        await cluster.submit(each, bash("sleep 600"), SMALL)
        monitor.watch(each)
        await until(monitor, each, Phase.RUNNING)
    await cluster.cancel(key)
    box.slurm("scancel", "--name", other.name)
    for each in (key, other):
        end = await until(monitor, each, Phase.ENDED)
        assert end.state == "CANCELLED"
        assert end.started_at is not None


async def test_a_job_killed_by_a_signal(cluster: Cluster, monitor: SlurmMonitor, key: JobKey) -> None:
    await cluster.submit(key, bash("kill -9 $$"), SMALL)
    end = await ended(monitor, key)
    assert (end.state, end.exit_status) == ("FAILED", 9)


async def test_a_failed_launch_is_shown_as_reason(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey
) -> None:
    """A failed launch looks like an end by signal 53. A job can also send itself this signal, so the reason decides."""
    await cluster.submit(key, bash("kill -53 $$"), SMALL)
    chosen = await ended(monitor, key)
    assert (chosen.exit_status, chosen.reason) == (53, "")
    lost = new_key()
    account = hand_over(box, lost)
    box.slurm("sbatch", f"--uid={account}", f"--gid={account}", f"--job-name={lost.name}",
              f"--comment={lost.comment}", "--output=/nowhere/at/all", "--wrap=true")  # fmt: skip
    end = await ended(monitor, lost)
    assert (end.state, end.reason) == ("FAILED", "JobLaunchFailure")


async def test_a_controller_that_is_down_makes_jobs_unknown_and_loses_nothing(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey, stop: Callable[[str], None]
) -> None:
    await cluster.submit(key, bash(f"{WAIT_FOR_LEAVE}; exit 3"), SMALL)
    absent = new_key()
    monitor.watch(key)
    monitor.watch(absent)
    running = await until(monitor, key, Phase.RUNNING)
    await until(monitor, absent, Phase.ABSENT)
    stop("slurmctld")
    assert await until(monitor, key, Phase.UNKNOWN, Phase.ENDED, Phase.ABSENT) == UNKNOWN
    assert monitor.observe(absent) == UNKNOWN
    with pytest.raises(SlurmUnreachable):
        await cluster.submit(absent, bash("true"), SMALL)
    outage = monitor.last_error
    assert isinstance(outage, SlurmUnreachable)
    assert outage.transient
    leave(box, key)
    box.start()
    end = await until(monitor, key, Phase.ENDED, Phase.ABSENT)
    assert (end.exit_status, end.started_at) == (768, running.started_at)
    assert monitor.last_error is None
    assert not (await cluster.submit(absent, bash("true"), SMALL)).adopted, "the refused submission left no job"
    assert (await until(monitor, absent, Phase.ENDED)).state == "COMPLETED"


async def test_without_accounting_no_submitted_claim_is_absent(
    box: Box,
    cluster: Cluster,
    monitor: SlurmMonitor,
    key: JobKey,
    stop: Callable[[str], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The monitor still sees live jobs and their ends, and new jobs can be submitted: neither needs accounting."""
    stop("slurmdbd")
    absent = new_key()
    hand_over(box, absent)
    monitor.watch(absent)
    monitor.watch(key)
    assert await until(monitor, key, Phase.ABSENT) == ABSENT, "the claim was never handed to Slurm"
    await cluster.submit(key, bash("true"), SMALL)
    assert (await until(monitor, key, Phase.ENDED)).state == "COMPLETED"
    assert monitor.observe(absent) == UNKNOWN
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == len(set(warnings)) > 0, "the outage is logged once"
    box.start()
    await until(monitor, absent, Phase.ABSENT)


async def test_while_the_spool_cannot_be_read_no_claim_is_absent_and_no_submission_is_repeated(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey
) -> None:
    """The records of ended jobs are in the spool. If it is not mounted, such jobs must not seem to be gone."""
    spool = Path(box.settings.grid_root) / "spool"
    monitor.watch(key)
    await until(monitor, key, Phase.ABSENT)
    box.folder(key).mkdir(exist_ok=True)
    (box.folder(key) / "intent").write_text(f"{int(time.time()) - 600}\n")
    away = spool.rename(spool.with_name("away"))
    try:
        monitor.look_now(key)
        assert (await until(monitor, key, Phase.UNKNOWN)).reason == UNREAD.reason
        with pytest.raises(SlurmUnreachable, match="cannot read"):
            await cluster.submit(key, bash("true"), SMALL)
    finally:
        away.rename(spool)
    await until(monitor, key, Phase.ABSENT)
    assert not (await cluster.submit(key, bash("true"), SMALL)).adopted


class CountingLogin(Login):
    """Counts the commands over a real login."""

    commands = 0

    async def run(self, argv, **options) -> CommandResult:  # type: ignore[no-untyped-def]
        self.commands += 1
        return await super().run(argv, **options)


async def test_many_jobs_cost_one_command_per_poll_and_ended_jobs_none(box: Box) -> None:
    login = CountingLogin(box.settings)
    cluster = Cluster(login, box.settings)
    monitor = SlurmMonitor(cluster, poll_s=0.2)
    keys = [new_key() for _ in range(12)]
    try:
        for each in keys:
            await cluster.submit(each, bash(WAIT_FOR_LEAVE), SMALL)
        async with asyncio.timeout(WAIT_S):
            while not {each.name for each in keys} <= set(box.slurm("squeue", "-h", "-t", "R", "-o", "%j").split()):
                await asyncio.sleep(0.2)
        login.commands = 0
        for each in keys:
            monitor.watch(each)
        for each in keys:
            await until(monitor, each, Phase.RUNNING)
        polls_while_running = login.commands
        for each in keys:
            leave(box, each)
        for each in keys:
            await until(monitor, each, Phase.ENDED)
        assert polls_while_running < len(keys)
        done = login.commands
        assert await monitor.changed(keys[0], monitor.observe(keys[0]), timeout_s=1.0) == monitor.observe(keys[0])
        assert login.commands == done, "the monitor does not poll after all jobs have ended"
    finally:
        await monitor.close()
        await login.close()


async def test_a_claim_is_watched_until_the_last_unwatch(cluster: Cluster, monitor: SlurmMonitor, key: JobKey) -> None:
    del cluster
    monitor.watch(key)
    monitor.watch(key)
    await until(monitor, key, Phase.ABSENT)
    monitor.unwatch(key)
    assert monitor.observe(key) == ABSENT
    monitor.unwatch(key)
    assert monitor.observe(key) == UNKNOWN
