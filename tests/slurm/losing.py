"""Simulates loss of data: a job that vanishes from queue, spool and accounting, and a controller without its state."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from deepgrid.lifecycle.job import JobKey
from deployments.onemachine.daemons.grid_files import socket_path
from deployments.onemachine.daemons.processes import ProcessTable
from deployments.onemachine.slurm import SlurmSite

WITHIN_S = 120.0
NEVER_GIVEN = 4_000_000_000  # an id that no job here gets


def lose(site: SlurmSite, cluster: str, key: JobKey) -> None:
    """Remove all traces of a waiting or running job from the cluster."""
    # The hook's record gets a comment without a claim, and the claim an id without a job. Accounting's row is deleted.
    for number in _slurm(site, cluster, "squeue", "-h", "-a", "-n", key.name, "-o", "%A").split():
        _slurm(site, cluster, "scontrol", "update", f"JobId={number}", "Comment=lost")
    _slurm(site, cluster, "scancel", "-n", key.name)
    deadline = time.monotonic() + WITHIN_S
    while _ends(site, cluster, key) in ("", "Unknown"):
        assert time.monotonic() < deadline, "the end of the job is not recorded"
        time.sleep(0.1)
    _sql(site, f"DELETE FROM {cluster}_job_table WHERE job_name = '{key.name}'")  # noqa: S608 - a test's own names
    assert not _ends(site, cluster, key)
    Path(site.login(cluster).grid_root, "jobs", key.folder, "id").write_text(f"{NEVER_GIVEN}\n")


def lose_state(site: SlurmSite, table: ProcessTable, cluster: str, put_back: Path | None = None) -> None:
    """Kill the controller and start it without its saved state, or with the state in `put_back`."""
    table.stop(f"{cluster}-slurmctld", signal.SIGKILL)
    folder = Path(site.login(cluster).grid_root).parent / "slurmctld"
    shutil.rmtree(folder)
    if put_back is not None:
        shutil.copytree(put_back, folder)
    site.start(table)


def _ends(site: SlurmSite, cluster: str, key: JobKey) -> str:
    return _slurm(site, cluster, "sacct", "-n", "-P", "-X", "-a", "--name", key.name, "-S", "now-1days", "-o", "End")


def _slurm(site: SlurmSite, cluster: str, *argv: str) -> str:
    env = {**os.environ, **site.environment(cluster)}
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout.strip()


def _sql(site: SlurmSite, statement: str) -> None:
    client = ["mariadb", "--no-defaults", f"--socket={socket_path(site.state) / 'private' / 'db.sock'}"]
    subprocess.run([*client, "slurm_acct_db", "-e", statement], check=True, capture_output=True)
