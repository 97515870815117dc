"""Scripts on a real Slurm cluster of two nodes: what the recorder of the other tests cannot show."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from deepgrid.lifecycle.job import JobKey
from deepgrid.sbatch import GUARD_MARK, StoragePaths, render
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.monitor import SlurmMonitor
from deepgrid.slurm.submit import SubmitRequest
from deepgrid.workflow import Job, parse
from tests.sbatch.bucket import S5CMD
from tests.slurm.conftest import box, cluster, key, monitor, state_folder  # noqa: F401 - fixtures
from tests.slurm.support import Box, ended

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture
def programs(box: Box) -> Path:  # noqa: F811
    """A folder of programs that this cluster's nodes have."""
    folder = Path(box.settings.grid_root).parent / "programs"
    folder.mkdir(exist_ok=True)
    shutil.copy(S5CMD, folder)
    return folder


@pytest.fixture
def storage(box: Box) -> StoragePaths:  # noqa: F811
    """Storage roots that every account may use."""
    paths = StoragePaths.under(str(Path(box.settings.grid_root).parent / "storage"))
    for root in paths.roots:
        Path(root).mkdir(parents=True, exist_ok=True)
        Path(root).chmod(0o1777)
    return paths


async def run(
    job: Job, cluster: Cluster, monitor: SlurmMonitor, key: JobKey, box: Box, storage: StoragePaths,  # noqa: F811
    programs: Path | None = None,
) -> tuple[int, str]:  # fmt: skip
    """Submit a workflow as a carrier would; its exit status and what it printed."""
    figures = job.resources
    request = SubmitRequest(figures.tasks, figures.cpus_per_task, figures.mem_per_cpu, figures.gpus, 5)
    script = render(job, storage)
    if programs:
        script = script.replace(GUARD_MARK, f"{GUARD_MARK}\nPATH={programs}:$PATH", 1)
    await cluster.submit(key, script, request)
    state = await ended(monitor, key)
    assert list(Path(storage.job).glob("*/*")) == []
    output = (box.folder(key) / "output.log").read_text()
    return state.exit_status >> 8, output


RESOURCES = "enableLogging: true\nresources: {tasks: 6, cpusPerTask: 1, memPerCpu: 100, gpus: 0}\n"


async def test_loops_launches_and_failures_with_real_steps(
    cluster: Cluster, monitor: SlurmMonitor, key: JobKey, box: Box, storage: StoragePaths  # noqa: F811
) -> None:  # fmt: skip
    text = """
steps:
  - launch:
      handleName: ready
      steps: [{run: {command: 'until [ -e go ]; do sleep 0.1; done; echo launched'}}]
  - launch: {steps: [{run: {command: 'touch up; exec sleep 1000'}, finally: [{run: {command: echo ended}}]}]}
  - run: {command: 'until [ -e up ]; do sleep 0.1; done; touch go'}
  - dependsOn: [ready]
    for:
      parallel: true
      items: [a, b]
      steps: [{run: {command: 'touch "$item"; until [ -e a ] && [ -e b ]; do sleep 0.1; done'}}]
  - run: {command: exit 7}
    catch: [{run: {command: 'echo caught $DEEPSQUARE_ERROR_CODE'}}]
    finally: [{run: {command: 'echo finally'}}]
  - name: both tasks
    run: {command: 'echo task', resources: {tasks: 2}}
  - run: {command: exit 13}
  - run: {command: echo never}
"""
    status, output = await run(parse(RESOURCES + text, "job").model, cluster, monitor, key, box, storage)
    assert status == 13
    own = [line for line in output.splitlines() if not line.startswith(("srun", "slurmstepd"))]
    assert own == ["launched", "caught 7", "finally", "Running: both tasks", "task", "task", "ended"]
