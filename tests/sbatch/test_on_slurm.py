"""The cancellation of a job by Slurm, which the recorder cannot show."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepgrid.lifecycle.job import JobKey
from deepgrid.sbatch import StoragePaths, render
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.submit.protocol import SubmitRequest
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deepgrid.workflow import parse
from tests.sbatch.slurm_support import RESOURCES, with_variable
from tests.sbatch.slurm_support import storage as storage
from tests.slurm.support import Box, ended
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


async def test_a_cancelled_job_runs_its_finally_and_leaves_nothing(
    cluster: Cluster, monitor: SlurmMonitor, key: JobKey, box: Box, storage: StoragePaths
) -> None:  # fmt: skip
    mark = f"cancelled-{key.job_id}"
    text = f"""
env: [{{key: MARK, value: {mark}}}]
steps:
  - launch: {{steps: [{{run: {{command: 'touch launched; sleep 1000 & wait'}}}}]}}
  - steps:
      - run: {{command: 'until [ -e launched ]; do sleep 0.1; done; echo begun; sleep 1000 & wait'}}
    catch: [{{run: {{command: echo never}}}}]
    finally: [{{run: {{command: echo tidied up}}}}]
  - run: {{command: echo never}}
"""
    request = SubmitRequest(6, 1, 100, 0, 5)
    await cluster.submit(key, render(parse(RESOURCES + text, "job").model, storage), request)
    log = box.folder(key) / "output.log"
    await until(lambda: log.exists() and "begun" in log.read_text())
    await cluster.cancel(key)
    state = await ended(monitor, key)
    await until(lambda: with_variable(f"MARK={mark}") == [])
    await until(lambda: list(Path(storage.job).glob("*/*")) == [])
    own = [line for line in log.read_text().splitlines() if not line.startswith(("srun", "slurmstepd"))]
    assert (state.state, own) == ("CANCELLED", ["begun", "tidied up"])
