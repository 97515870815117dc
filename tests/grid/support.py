"""Jobs that the tests of the whole grid submit, and commands that inspect the grid."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from deepgrid.lifecycle.job import Job
from deployments.onemachine.grid import LocalGrid
from tests.grid.customer import PATIENCE_S, Customer

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
