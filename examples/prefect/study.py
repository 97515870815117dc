"""A flow of another Prefect project: it runs one job on the team's own Slurm cluster, and submits one to the grid."""

import asyncio
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.runtime import flow_run

from blocks import SlurmLogin
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.submit.batch import BatchJobs
from flows.submit_job import submit_job
from tasks.run_step import run_step

WORKFLOW = Path(__file__).with_name("simulate.yaml")
ONE_CPU = ["--ntasks=1", "--cpus-per-task=1", "--mem=100"]
CALIBRATE = """#!/bin/bash
echo "calibrated on $(hostname)"
"""


async def on_own_cluster(block: SlurmLogin, name: str, script: str) -> str:
    """Run one job on the cluster of the block, and return its output."""
    login = Login(block.settings())
    try:
        return await BatchJobs(login, block.settings()).run(name, script, ONE_CPU, limit_minutes=5, wait_minutes=60)
    finally:
        await login.close()


@flow(log_prints=True)
async def study(slurm: str = "mine", customer: str = "me", credits: str = "100") -> State[Any]:
    """Calibrate on your own cluster, then let the grid simulate. The flow ends as the submission does."""
    block = await SlurmLogin.aload(slurm)
    name = f"calibrate-{flow_run.get_id()}"  # a retry ends the job that the attempt before left under this name
    print(await run_step("calibrate on our cluster", on_own_cluster, block, name, CALIBRATE))
    return await submit_job(customer, WORKFLOW, credits, return_state=True)


if __name__ == "__main__":
    asyncio.run(study())
