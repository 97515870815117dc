"""Helpers for tests on a real cluster: the cluster with its administrator's rights, claims, and waiting."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from pwd import getpwnam

from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase, SlurmJob
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.channel import CommandResult
from deepgrid.slurm.ssh.login import Runner
from deepgrid.slurm.ssh.login_settings import LoginSettings
from deepgrid.slurm.submit.protocol import SubmitRequest
from deepgrid.slurm.supervision.monitor import SlurmMonitor, query_verdicts
from deployments.onemachine.daemons.processes import ProcessTable
from deployments.onemachine.slurm import ClusterSpec, SlurmSite
from tests.running_site import running_site

SMALL = SubmitRequest(ntasks=1, cpus_per_task=1, mem_per_cpu_mb=100, gpus=0, time_limit_minutes=5)
CONTRACT = "0x" + "c0ffee00" * 5
WAIT_S = 240.0
SCRIPT_S = 600.0

_serial = count(1)


@dataclass(frozen=True)
class Box:
    """The cluster under test, with the rights of its administrator."""

    site: SlurmSite
    table: ProcessTable
    name: str

    @property
    def settings(self) -> LoginSettings:
        return self.site.login(self.name)

    def slurm(self, *argv: str, check: bool = True) -> str:
        """Run a Slurm command as the cluster's administrator."""
        env = {**os.environ, **self.site.environment(self.name)}
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def run_script(self, script: bytes, options: Sequence[str], folder: Path, env: dict[str, str]) -> tuple[int, bytes]:
        """Run a batch script in our own account. Returns its exit status, as shells give it, and its output."""
        log = folder / "job.log"
        log.unlink(missing_ok=True)
        command = ["sbatch", "--parsable", "--no-requeue", f"--output={log}", f"--chdir={folder}", *options]
        env = {"PATH": os.environ["PATH"], "HOME": str(folder), **self.site.environment(self.name), **env}
        sent = subprocess.run(command, input=script, env=env, capture_output=True, check=False)
        assert sent.returncode == 0, sent.stderr
        number, deadline = sent.stdout.decode().strip(), time.monotonic() + SCRIPT_S
        while (state := self._field(number, "JobState")) in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING"):
            if time.monotonic() > deadline:
                self.slurm("scancel", number)
                raise AssertionError(f"the job is still {state}: {log.read_text() if log.exists() else ''}")
            time.sleep(0.1)
        status, _, signal = self._field(number, "ExitCode").partition(":")
        return int(status) or (128 + int(signal) if int(signal) else 0), log.read_bytes()

    def _field(self, job: str, name: str) -> str:
        words = self.slurm("scontrol", "--oneliner", "show", "job", job).split()
        return next(word.partition("=")[2] for word in words if word.startswith(f"{name}="))

    def stop(self, daemon: str) -> None:
        """Stop one daemon. An sshd is stopped with its sessions."""
        if daemon == "sshd":
            self.site.stop_login(self.table, self.name)
        else:
            self.table.stop(f"{self.name}-{daemon}" if daemon == "slurmctld" else daemon)

    def start(self) -> None:
        """Start all stopped daemons again."""
        self.site.start(self.table)

    def folder(self, key: JobKey) -> Path:
        """Return the claim's folder on the login node."""
        return Path(self.settings.grid_root) / "jobs" / key.folder

    def ids(self, key: JobKey) -> list[int]:
        """Return the ids of all jobs of this name that the controller remembers."""
        queued = self.slurm("squeue", "-h", "-a", "-t", "all", "-n", key.name, "-o", "%A")
        return [int(word) for word in queued.split()]


def resume_nodes(box: Box) -> None:
    """Let all nodes take jobs again. Slurm asks a resumed node first, which does not respond until then."""
    box.slurm("scontrol", "update", "nodename=ALL", "state=resume", check=False)
    deadline = time.monotonic() + WAIT_S
    while not set(box.slurm("sinfo", "-h", "-N", "-o", "%T").split()) <= {"idle", "mixed", "allocated"}:
        assert time.monotonic() < deadline, "a node does not take jobs again"
        time.sleep(0.1)


@contextmanager
def open_folder() -> Iterator[Path]:
    """Yield a folder that other accounts can enter, unlike pytest's. Jobs can run there under another account."""
    folder = Path(tempfile.mkdtemp(prefix="dg-slurm-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running_box(spec: ClusterSpec) -> Iterator[Box]:
    """Yield a separate cluster."""
    with open_folder() as folder, running_site(folder, spec) as (site, table):
        yield Box(site, table, spec.name)


def new_key() -> JobKey:
    """Return a claim that no other test has."""
    return JobKey(31337, CONTRACT, int(time.time()) * 1000 + next(_serial), int(time.time()))


def hand_over(box: Box, key: JobKey) -> str:
    """Make the files of a claim that was handed to Slurm, and return its account."""
    account = box.settings.job_account or box.settings.user
    box.folder(key).mkdir(parents=True)
    (box.folder(key) / "account").write_text(f"{account} {getpwnam(account).pw_uid}\n")
    return account


class LoginWith:
    """A login whose commands get additional environment variables."""

    def __init__(self, login: Runner, **variables: str) -> None:
        self._login = login
        self._variables = [f"{name}={value}" for name, value in variables.items()]

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float | None = None) -> CommandResult:
        return await self._login.run(["env", *self._variables, *argv], stdin=stdin, timeout_s=timeout_s)

    async def close(self) -> None:
        await self._login.close()


WAIT_FOR_LEAVE = "until [ -e leave ]; do sleep 0.1; done"


def leave(box: Box, key: JobKey) -> None:
    """Let a job continue that runs WAIT_FOR_LEAVE."""
    (box.folder(key) / "run" / "leave").touch()


def bash(body: str) -> str:
    return f"#!/bin/bash -l\n{body}\n"


async def until(monitor: SlurmMonitor, key: JobKey, *phases: Phase) -> SlurmJob:
    """Wait until the claim's job is in one of `phases`."""
    deadline = time.monotonic() + WAIT_S
    while (job := monitor.observe(key)).phase not in phases:
        assert time.monotonic() < deadline, f"still {job}"
        await monitor.changed(key, job, 5)
    return job


async def printed(cluster: Cluster, key: JobKey) -> None:
    """Wait until the claim's job printed something: its payload runs, and a cancellation cannot prevent it."""
    async with asyncio.timeout(WAIT_S):
        while not await cluster.read_output({key: 0}):
            await asyncio.sleep(0.1)


async def ended(monitor: SlurmMonitor, key: JobKey) -> SlurmJob:
    monitor.watch(key)
    return await until(monitor, key, Phase.ENDED)


async def ends(cluster: Cluster, *keys: JobKey) -> dict[JobKey, SlurmJob]:
    """Return the ends of the claims that have ended, by one new query."""
    _, states = await query_verdicts(cluster, keys)
    return {key: job for key, job in states.items() if job.phase is Phase.ENDED}


async def by_accounting(cluster: Cluster, key: JobKey) -> SlurmJob:
    """Wait until accounting has the claim's end, and return it."""
    snapshot = await cluster.snapshot([key])
    ids = {key: snapshot.ids.get(key.comment)}
    deadline = time.monotonic() + WAIT_S
    while (end := snapshot.records_of(key, await cluster.accounting_of(ids)).end) is None:
        assert time.monotonic() < deadline, "accounting has no end of the job"
        await asyncio.sleep(0.1)
    return end


@contextmanager
def iperf3_server() -> Iterator[int]:
    """Run a real iperf3 server on loopback. Yields its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    command = ["iperf3", "-s", "--forceflush", "-B", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        while "listening" not in (line := server.stdout.readline()):
            assert line, "iperf3 ended"
        yield port
    finally:
        server.terminate()
        server.wait()
