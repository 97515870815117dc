"""A job opens connections to slurmctld and sends nothing, so that slurmctld serves no other client."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest

from deepgrid.errors import SlurmUnreachable
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.setup.guards import ask_guards, missing_guards
from deepgrid.slurm.setup.selftest import run_selftest
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from tests.attacks.cleaning import CUSTOMER, JOB, OF_CUSTOMER, OF_OTHER
from tests.attacks.flooding import CONNECTIONS, ENOUGH, flooding, limited_connections
from tests.slurm.support import WAIT_FOR_LEAVE, WAIT_S, Box, bash, leave, new_key, printed, until

SOON_S = 4.0  # Slurm's commands wait for longer behind a flood
HELD = f"A job on the node {os.uname().nodename} could hold 8 connections to slurmctld, and no more."
pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="accounts are made by root")


@pytest.fixture
def limited(box: Box, either: Cluster) -> Iterator[None]:
    with limited_connections(box, either.settings):
        yield


@asynccontextmanager
async def flood(cluster: Cluster, box: Box, connections: int = CONNECTIONS) -> AsyncIterator[JobKey]:
    """Yield a claim of the attacker, whose job floods slurmctld until the end of the context."""
    key = new_key()
    await cluster.submit(key, bash(flooding(box, connections)), OF_CUSTOMER)
    try:
        await printed(cluster, key)
        yield key
    finally:
        leave(box, key)
        await recovered(cluster)


async def recovered(cluster: Cluster) -> None:
    """Wait until Slurm answers again."""
    async with asyncio.timeout(WAIT_S):
        while True:
            with suppress(SlurmUnreachable):
                return await cluster.health()


@pytest.mark.usefixtures("limited")
@pytest.mark.attack(
    "opens 1,800 connections to slurmctld and sends nothing, then asks for the cancellation of its job",
    attacker=JOB, gain="nothing: its job, and others' jobs, are cancelled meanwhile",
    defence="the firewall of each node limits the connections of each account; the doctor checks this",
)  # fmt: skip
async def test_a_limited_flood_keeps_no_job_from_being_cancelled(box: Box, either: Cluster) -> None:
    monitor = SlurmMonitor(either, poll_s=0.2)
    other = new_key()
    await either.submit(other, bash(f"echo up; {WAIT_FOR_LEAVE}"), OF_OTHER)
    await printed(either, other)
    async with flood(either, box) as key:
        await either.health()
        for one in (other, key):
            monitor.watch(one)
            await either.cancel(one)
            await until(monitor, one, Phase.ENDED)
    await monitor.close()


@pytest.mark.usefixtures("limited")
async def test_the_doctor_sees_the_limit(box: Box, either: Cluster) -> None:
    """Root sees the rule. Without root, a job on a node counts the connections that it can hold."""
    settings = replace(either.settings, own_account=either.settings.account_of(CUSTOMER))
    login = Login(settings)
    try:
        missing = {guard.name for guard in missing_guards(await ask_guards(login, settings), settings)}
        findings = await run_selftest(login, Cluster(login, settings), ["/tmp"])
    finally:
        await login.close()
    assert ("connections" in missing) == (settings.user != "root")
    assert [one.words for one in findings if one.subject == "connections"] == [HELD], findings


@pytest.mark.long  # Slurm's commands wait for their timeouts
async def test_a_flood_without_a_limit_is_named(box: Box, either: Cluster) -> None:
    """The error is transient: work continues when the flood ends."""
    account = either.settings.account_of(CUSTOMER)
    flooded = rf"may be flooded by \d+ connections from 127\.0\.0\.1, \d+ connections of the account {account}\."
    settings = replace(either.settings, slurm_timeout_s=SOON_S)
    login = Login(settings)
    hasty = Cluster(login, settings)
    async with flood(either, box, ENOUGH) as key:
        with pytest.raises(SlurmUnreachable, match=flooded):
            await hasty.health()
        with pytest.raises(SlurmUnreachable, match=flooded):
            await hasty.cancel(key)
    await either.cancel(key)
    await login.close()
