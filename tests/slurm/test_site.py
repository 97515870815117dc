"""The one-machine clusters: several at once, restarts from the same state, and no leftovers."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from pathlib import Path

import pytest

from deepgrid.errors import ConfigurationError
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deployments.onemachine.daemons.grid_files import socket_folder, socket_path
from deployments.onemachine.daemons.ports import PortBook
from deployments.onemachine.slurm import ClusterSpec, SlurmSite
from tests.running_site import running_site
from tests.slurm.support import SMALL, Box, bash, ended, new_key


def living(*marks: str) -> list[str]:
    """Return the command lines of live processes with one of `marks` in command line or environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
            dead = (folder / "stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
            text = (words + (folder / "environ").read_bytes()).decode(errors="replace")
        except OSError:
            continue
        if not dead and int(folder.name) != os.getpid() and any(mark in text for mark in marks):
            found.append(words.decode(errors="replace"))
    return found


async def test_two_clusters_beside_another_grid_leave_no_trace_and_start_again(box: Box, tmp_path: Path) -> None:
    """The state folder is too deep for sockets and closed to other accounts, and a job clears its environment."""
    state = tmp_path / ("deep" * 30)
    mark = f"a-job-of-{os.getpid()}-{time.time_ns()}"
    key = new_key()
    with running_site(state, ClusterSpec("one"), ClusterSpec("two", nodes=1)) as (site, table):
        assert site.job_account is None
        assert "share one Unix account" in site.notes[0]
        for name, nodes in (("one", 2), ("two", 1)):
            login = Login(site.login(name))
            cluster = Cluster(login, site.login(name))
            assert (await cluster.hardware()).nodes == nodes
            monitor = SlurmMonitor(cluster, poll_s=0.2)
            await cluster.submit(key, bash(f"exec env -i /bin/sh -c 'echo up; sleep 600; : {mark}'"), SMALL)
            monitor.watch(key)
            while not await cluster.read_output({key: 0}):
                await monitor.changed(key, monitor.observe(key), 0.2)
            await monitor.close()
            await login.close()
        await accounted(site, "one", "RUNNING")
        assert table.names()
    assert living(str(state), str(socket_path(state)), mark) == []
    assert not socket_path(state).exists()
    assert box.slurm("sinfo", "-h", "-o", "%T").strip(), "the other grid is unchanged"

    with running_site(state, ClusterSpec("one"), ClusterSpec("two", nodes=1)) as (site, _):
        login = Login(site.login("one"))
        monitor = SlurmMonitor(Cluster(login, site.login("one")), poll_s=0.2)
        assert (await ended(monitor, key)).state == "NODE_FAIL", "its end is known, and is not the job's fault"
        await monitor.close()
        await login.close()
        await accounted(site, "one", "NODE_FAIL")


async def accounted(site: SlurmSite, cluster: str, state: str) -> None:
    """Wait until accounting shows a job in that state. slurmctld reports it with a delay."""
    async with asyncio.timeout(120):
        while state not in accounts(site, cluster):
            await asyncio.sleep(0.2)


def accounts(site: SlurmSite, cluster: str) -> str:
    env = {**os.environ, **site.environment(cluster)}
    command = ["sacct", "-n", "-X", "-a", "-S", "now-1days", "-o", "State%20"]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout


def test_ports_stay_the_same_and_are_free_and_different(tmp_path: Path) -> None:
    book = PortBook(tmp_path / "ports.json")
    ports = {name: book.port(name) for name in ("a", "b", "c")}
    assert len(set(ports.values())) == 3
    assert {name: PortBook(tmp_path / "ports.json").port(name) for name in ports} == ports


def test_a_socket_folder_of_another_account_is_not_used(tmp_path: Path) -> None:
    path = socket_path(tmp_path)
    path.symlink_to(tmp_path)
    try:
        with pytest.raises(ConfigurationError, match="belongs to another account"):
            socket_folder(tmp_path)
    finally:
        path.unlink()


def test_secrets_of_the_cluster_are_closed_to_jobs(box: Box) -> None:
    """The job account can pass through the state folder, so each private file is protected by itself."""
    shared = box.site.state / "slurm"
    cluster = shared / box.name
    for private in (shared / "munge.key", shared / "database", shared / "slurmdbd.conf", cluster / "ssh",
                    cluster / "slurmctld", cluster / "grid" / "spool"):  # fmt: skip
        assert private.stat().st_mode & 0o077 == 0, private
    assert cluster.stat().st_mode & 0o066 == 0
