"""What a site does to jobs on a real Slurm: ends that it causes, and limits of its accounts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deepgrid.errors import SubmitLimit
from deepgrid.lifecycle import ends
from deepgrid.lifecycle.actions import Refuse, Settle
from deepgrid.lifecycle.decide import decide
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.pending_reasons import Outlook, pending_reason
from deepgrid.lifecycle.slurm_state import Phase, SlurmJob
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deployments.onemachine.slurm import ClusterSpec
from tests.lifecycle.support import R, S, seen
from tests.slurm.support import SMALL, Box, bash, by_accounting, new_key, printed, running_box, until

pytestmark = pytest.mark.long  # a separate cluster with another configuration

CONFIGURED = """
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
Prolog={prolog}
AccountingStorageEnforce=limits,qos
JobAcctGatherFrequency=task=2
JobAcctGatherParams=OverMemoryKill
PartitionName=urgent Nodes=ALL MaxTime=INFINITE DefaultTime=10 State=UP PriorityTier=10 DefMemPerCPU=100
"""
PROLOG = "#!/bin/sh\n[ ! -e {switch} ]\n"


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    """A cluster with one node of one CPU, a partition that preempts the others, and a prolog that can fail."""
    with running_box(ClusterSpec("ends", nodes=1, cpus_per_node=1)) as box:
        prolog = failing(box).with_name("prolog")
        prolog.write_text(PROLOG.format(switch=failing(box)))
        prolog.chmod(0o755)
        account(box, "add", "account", "grid")
        account(box, "add", "user", owner(box), "account=grid")
        configure(box, CONFIGURED.format(prolog=prolog))
        yield box


def owner(box: Box) -> str:
    """Return the Unix account of the jobs."""
    return box.settings.job_account or box.settings.user


def account(box: Box, *words: str) -> None:
    """Change an account or a QOS in accounting."""
    box.slurm("sacctmgr", "-i", "-Q", *words)


def failing(box: Box) -> Path:
    """Return the file whose existence makes the prolog fail."""
    return Path(box.site.environment("ends")["SLURM_CONF"]).with_name("prolog-fails")


def configure(box: Box, text: str) -> None:
    """Add to the configuration of all daemons."""
    with open(box.site.environment("ends")["SLURM_CONF"], "a") as conf:
        conf.write(text)
    for daemon in (one for one in box.site.daemons() if one.name == "ends-slurmctld"):
        box.table.stop(daemon.name)
        box.table.start(daemon)
        box.table.wait_ready(daemon)
    box.slurm("scontrol", "reconfigure")


async def running(cluster: Cluster, monitor: SlurmMonitor, script: str = "echo runs\nsleep 600") -> JobKey:
    """Submit a job and wait until its script runs."""
    key = new_key()
    await cluster.submit(key, bash(script), SMALL)
    monitor.watch(key)
    await until(monitor, key, Phase.RUNNING)
    await printed(cluster, key)
    return key


def settled(end: SlurmJob) -> Settle:
    """Return how a job that the chain shows as running is settled."""
    action = decide(seen(R, end, granted_minutes=SMALL.time_limit_minutes, limit_minutes=SMALL.time_limit_minutes))
    assert isinstance(action, Settle)
    return action


async def end_of(monitor: SlurmMonitor, key: JobKey) -> Settle:
    """Return how the job is settled at its end."""
    return settled(await until(monitor, key, Phase.ENDED))


def slurm_id(box: Box, key: JobKey) -> str:
    return str(box.ids(key)[0])


@pytest.mark.situation("ends", "a job of another partition preempts the job", "it fails and costs nothing")
async def test_a_preempted_job_is_the_clusters_fault(box: Box, cluster: Cluster, monitor: SlurmMonitor) -> None:
    key = await running(cluster, monitor)
    box.slurm(
        "sbatch", f"--uid={owner(box)}", f"--gid={owner(box)}", "-p", "urgent", "--output=/dev/null", "--wrap=true"
    )
    action = await end_of(monitor, key)
    assert (action.minutes, action.error) == (0, ends.ENDS["PREEMPTED"].error)
    assert ends.is_fault((await by_accounting(cluster, key)).state)


@pytest.mark.situation("ends", "the partition has a GraceTime, and a job is preempted", "it fails and costs nothing")
async def test_a_preempted_job_that_ends_in_its_grace_time_is_the_clusters_fault(
    box: Box, cluster: Cluster, monitor: SlurmMonitor
) -> None:
    """Slurm 22.05 sends TERM first, and calls the end FAILED."""
    box.slurm("scontrol", "update", f"partitionname={box.settings.partition}", "GraceTime=60")
    try:
        key = await running(cluster, monitor, "echo runs\nsrun sleep 600")
        user = owner(box)
        box.slurm("sbatch", f"--uid={user}", f"--gid={user}", "-p", "urgent", "--output=/dev/null", "--wrap=true")
        action = await end_of(monitor, key)
    finally:
        box.slurm("scontrol", "update", f"partitionname={box.settings.partition}", "GraceTime=0")
    assert (action.minutes, action.error) == (0, ends.ENDS["PREEMPTED"].error)


@pytest.mark.situation("ends", "a node goes down while the job runs", "it fails and costs nothing")
async def test_a_job_on_a_node_that_goes_down_is_the_clusters_fault(
    box: Box, cluster: Cluster, monitor: SlurmMonitor
) -> None:
    key = await running(cluster, monitor)
    box.slurm("scontrol", "update", "nodename=ALL", "state=down", "reason=power")
    action = await end_of(monitor, key)
    assert (action.minutes, action.error) == (0, ends.ENDS["NODE_FAIL"].error)
    box.slurm("scontrol", "update", "nodename=ALL", "state=resume", check=False)  # the node may be back already
    assert (await by_accounting(cluster, key)).state == "NODE_FAIL"


@pytest.mark.situation(
    "ends", "an administrator cancels the job (`CANCELLED by 0`)",
    "it fails and costs nothing: accounting names the account",
)  # fmt: skip
async def test_a_job_that_an_administrator_cancels_costs_nothing(
    box: Box, cluster: Cluster, monitor: SlurmMonitor
) -> None:
    key = await running(cluster, monitor)
    box.slurm("scancel", slurm_id(box, key))
    action = await end_of(monitor, key)
    assert (action.minutes, action.error, action.tombstone) == (0, ends.CANCELLED_BY_SITE.error, True)


@pytest.mark.situation("ends", "a job cancels itself (`CANCELLED by` its own account)", "what ran is billed")
async def test_a_job_that_cancels_itself_is_billed(cluster: Cluster, monitor: SlurmMonitor) -> None:
    key = new_key()
    await cluster.submit(key, bash("scancel $SLURM_JOB_ID; sleep 600"), SMALL)
    monitor.watch(key)
    action = await end_of(monitor, key)
    assert (action.minutes, action.error) == (1, ends.CANCELLED_BY_ITSELF.error)


@pytest.mark.situation(
    "ends", "a job takes more memory than it asked for, and Slurm ends it (`OverMemoryKill`)",
    "what ran is billed, though accounting calls the step `CANCELLED by 0`",
)  # fmt: skip
async def test_a_job_that_takes_too_much_memory_is_billed(cluster: Cluster, monitor: SlurmMonitor) -> None:
    key = new_key()
    await cluster.submit(key, bash("exec python3 -c 'x = b\"1\" * 400_000_000; import time; time.sleep(300)'"), SMALL)
    monitor.watch(key)
    action = await end_of(monitor, key)
    assert (action.minutes, action.exit_status) == (1, 9)
    assert not ends.is_fault((await by_accounting(cluster, key)).state)


@pytest.mark.situation(
    "ends", "the cluster suspends the job for a while", "the time for which it was suspended is not billed"
)
async def test_suspended_time_is_not_billed(box: Box, cluster: Cluster, monitor: SlurmMonitor) -> None:
    key = await running(cluster, monitor, "echo runs\nsleep 2")
    box.slurm("scontrol", "suspend", slurm_id(box, key))
    suspended = time.monotonic()
    await asyncio.sleep(5)
    least_s = int(time.monotonic() - suspended) - 2  # Slurm counts whole seconds, and suspends a moment later
    box.slurm("scontrol", "resume", slurm_id(box, key))
    end = await until(monitor, key, Phase.ENDED)
    assert end.state == "COMPLETED" and end.started_at is not None and end.ended_at is not None
    assert least_s <= end.suspended_s <= time.monotonic() - suspended + 2
    assert end.run_s <= end.ended_at - end.started_at - least_s
    accounted = await by_accounting(cluster, key)
    assert abs(accounted.run_s - end.run_s) <= 2


@pytest.mark.situation(
    "ends", "the prolog fails on the node", "the job fails and costs nothing, and the node is drained"
)
async def test_a_job_whose_prolog_fails_costs_nothing(box: Box, cluster: Cluster, monitor: SlurmMonitor) -> None:
    key = new_key()
    failing(box).touch()
    try:
        await cluster.submit(key, bash("echo ran"), SMALL)
        monitor.watch(key)
        end = await until(monitor, key, Phase.ENDED)
    finally:
        failing(box).unlink()
        box.slurm("scontrol", "update", "nodename=ALL", "state=resume", check=False)
    if end.started_at is not None:  # otherwise the job is given back
        action = settled(end)
        assert (action.minutes, action.tombstone) == (0, True)
    assert b"ran\n" not in b"".join((await cluster.read_output({key: 0})).values())


@pytest.mark.situation(
    "ends", "an administrator lowers the time limit of a running job",
    "the job fails, and what ran is billed: its account could do that too",
)  # fmt: skip
@pytest.mark.deep  # the controller checks time limits each half minute
async def test_a_job_that_ends_before_its_limit_says_so(box: Box, cluster: Cluster, monitor: SlurmMonitor) -> None:
    key = await running(cluster, monitor)
    box.slurm("scontrol", "update", f"jobid={slurm_id(box, key)}", "EndTime=now+2")
    action = await end_of(monitor, key)
    assert action.error == ends.ENDED_EARLY.error
    assert action.minutes == 1


async def test_the_jobs_account_cannot_suspend_its_job(box: Box, cluster: Cluster, monitor: SlurmMonitor) -> None:
    """Suspended time is free, so only an administrator may suspend."""
    key = new_key()
    await cluster.submit(key, bash("scontrol suspend $SLURM_JOB_ID 2>&1"), SMALL)
    monitor.watch(key)
    end = await until(monitor, key, Phase.ENDED)
    assert end.suspended_s == 0
    assert b"denied" in (await cluster.read_output({key: 0}))[key]


@pytest.mark.situation(
    "submission", "the account may not submit another job (`AssocMaxSubmitJobLimit`)",
    "the job waits with its claim, is submitted when one ends, and fewer jobs are claimed",
)  # fmt: skip
async def test_a_limit_of_submitted_jobs_is_waited_for(box: Box, cluster: Cluster, monitor: SlurmMonitor) -> None:
    first, second = await running(cluster, monitor), new_key()
    account(box, "modify", "user", owner(box), "set", "MaxSubmitJobs=1")
    try:
        await eventually_limited(cluster)
        with pytest.raises(SubmitLimit, match=r"\(AssocMaxSubmitJobLimit\)"):  # also at once
            await cluster.submit(second, bash("true"), SMALL)
        await cluster.cancel(first)
        await until(monitor, first, Phase.ENDED)
        assert not (await cluster.submit(second, bash("true"), SMALL)).adopted
    finally:
        account(box, "modify", "user", owner(box), "set", "MaxSubmitJobs=-1")
    monitor.watch(second)
    assert (await until(monitor, second, Phase.ENDED)).state == "COMPLETED"


async def eventually_limited(cluster: Cluster) -> None:
    """Wait until the controller knows the new limit. Before that it accepts jobs, which are cancelled."""
    async with asyncio.timeout(30):
        while True:
            probe = new_key()
            try:
                await cluster.submit(probe, bash("true"), SMALL)
            except SubmitLimit:
                return
            await cluster.cancel(probe)
            await asyncio.sleep(0.2)


@pytest.mark.situation(
    "pending", "a QOS limits the length of jobs (`QOSMaxWallDurationPerJobLimit`)",
    "the job is given back at once, unbilled",
)  # fmt: skip
async def test_a_job_beyond_a_limit_of_the_qos_is_given_back(box: Box, cluster: Cluster, monitor: SlurmMonitor) -> None:
    account(box, "modify", "qos", "normal", "set", "MaxWall=1")
    try:
        key = new_key()
        await cluster.submit(key, bash("true"), SMALL)
        monitor.watch(key)
        seen_reason = await reason_of(monitor, key)
        assert decide(seen(S, seen_reason)) == Refuse("the job is beyond a limit of the cluster's account")
    finally:
        account(box, "modify", "qos", "normal", "set", "MaxWall=-1")
        await cluster.cancel(key)


async def reason_of(monitor: SlurmMonitor, key: JobKey) -> SlurmJob:
    """Return the job in the queue once its reason cannot pass by itself."""
    job = await until(monitor, key, Phase.QUEUED)
    async with asyncio.timeout(60):
        while pending_reason(job.reason).outlook is Outlook.PASSES:
            job = await monitor.changed(key, job, 5)
    return job
