"""Jobs that the tests of the whole grid submit, and commands that inspect the grid."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from deepgrid.lifecycle.job import Job
from deployments.onemachine.grid import LocalGrid
from tests.grid.customer import PATIENCE_S, Customer
from tests.waiting import until

HEAD = "enableLogging: true\nresources: {tasks: 1, cpusPerTask: 1, memPerCpu: 100, gpus: 0}\n"


def steps(*commands: str) -> str:
    return HEAD + "steps:\n" + "".join(f"  - run: {{command: {json.dumps(command)}}}\n" for command in commands)


def in_slurm(customer: Customer, job_id: int) -> str:
    """Return the job's lines in the queues of all clusters."""
    found = ""
    for cluster in ("alpha", "beta"):
        environment = customer.grid.slurm.environment(cluster)
        argv = ["squeue", "-h", "-a", "-n", f"dg-{job_id}", "-o", "%A %T"]
        found += subprocess.run(
            argv, check=False, env={"PATH": "/usr/bin:/bin", **environment}, capture_output=True, text=True
        ).stdout
    return found.strip()


def cold(job: Job) -> bool:
    return job.status.cold


def prefect(grid: LocalGrid, *arguments: str) -> str:
    """Run the `prefect` command and return its output."""
    command = [str(Path(sys.executable).with_name("prefect")), "--no-prompt", *arguments]
    env = {**os.environ, **grid.prefect.environment()}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@asynccontextmanager
async def busy_nodes(grid: LocalGrid, cluster: str) -> AsyncIterator[None]:
    """Keep all nodes of a cluster busy with a job of its administrator: it accepts jobs and does not start them."""
    environment = {**os.environ, **grid.slurm.environment(cluster)}

    def run(*command: str) -> str:
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=PATIENCE_S)
        return done.stdout.strip()

    nodes = run("sinfo", "-h", "-o", "%D")
    options = ("--parsable", "--exclusive", f"--nodes={nodes}", "--mem=0", "--output=/dev/null", "--chdir=/")
    job = await asyncio.to_thread(run, "sbatch", *options, "--wrap=sleep 3600")
    try:
        await until(lambda: run("squeue", "-h", "-j", job, "-o", "%T") == "RUNNING", within_s=PATIENCE_S)
        yield
    finally:
        await asyncio.to_thread(run, "scancel", job)
