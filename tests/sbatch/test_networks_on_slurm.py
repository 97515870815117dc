"""Networks of steps on a real Slurm cluster: several tasks, two nodes, and cancellation by Slurm."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from deepgrid.lifecycle.job import JobKey
from deepgrid.sbatch import StoragePaths, render
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.submit.protocol import SubmitRequest
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deepgrid.workflow import load, parse
from tests.sbatch.examples import FOLDER, NETWORK_EXAMPLES
from tests.sbatch.sandbox import UNAVAILABLE
from tests.sbatch.slurm_support import RESOURCES, run, with_variable
from tests.sbatch.slurm_support import node as node
from tests.sbatch.slurm_support import storage as storage
from tests.sbatch.support import without_progress
from tests.slurm.support import Box, ended
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

GREETINGS = ["greetings from 10.7.0.2"]


@pytest.mark.parametrize("name", ["network-own", "network-dns", "network-virtual"])
async def test_an_example_does_the_same_on_slurm(
    name: str, node: list[str], cluster: Cluster, monitor: SlurmMonitor, key: JobKey, box: Box, storage: StoragePaths
) -> None:  # fmt: skip
    status, output = await run(load(FOLDER / f"{name}.yaml").model, cluster, monitor, key, box, storage)
    own = without_progress(output)
    if missing := node[0 if name == "network-own" else 1]:
        assert (status, missing in own) == (UNAVAILABLE, True)
    else:
        assert (status, own) == (0, NETWORK_EXAMPLES[name] * (2 if name == "network-own" else 1))


async def test_a_cancelled_job_leaves_no_network(
    node: list[str], cluster: Cluster, monitor: SlurmMonitor, key: JobKey, box: Box, storage: StoragePaths
) -> None:  # fmt: skip
    """This holds even if the command ignores the signal. Then Slurm kills it, and the kernel ends the rest."""
    mark = f"network-{key.job_id}"
    text = f"""
env: [{{key: MARK, value: {mark}}}]
steps:
  - run:
      network: slirp4netns
      resources: {{tasks: 2}}
      command: "trap '' TERM; touch up-$SLURM_PROCID; while :; do sleep 1; done"
"""
    job = parse(RESOURCES + text, "job").model
    await cluster.submit(key, render(job, storage), SubmitRequest(6, 1, 100, 0, 5))
    if node[0]:
        state = await ended(monitor, key)
        assert state.exit_status >> 8 == UNAVAILABLE
        return
    await until(lambda: len(list(Path(storage.job).glob("*/*/up-*"))) == 2)
    assert len(stacks_of(key.name)) == 2
    box.slurm("scancel", *map(str, box.ids(key)))
    await ended(monitor, key)
    await until(lambda: not with_variable(f"MARK={mark}"))
    await until(lambda: not list(Path(storage.job).glob("*/*")))
    await until(lambda: not stacks_of(key.name))


def stacks_of(job: str) -> list[int]:
    """Return the ids of the network programs of a Slurm job with this name. They do not have the job's environment."""
    found = subprocess.run(["pgrep", "-x", "slirp4netns"], check=False, capture_output=True, text=True).stdout
    return [int(pid) for pid in found.split() if f"/{job}." in folder_of(pid)]


def folder_of(pid: str) -> str:
    """Return the working folder of a process; empty if it is ending."""
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""
