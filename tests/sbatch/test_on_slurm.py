"""Scripts on a real Slurm cluster of two nodes, for promises that the recorder cannot show."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepgrid.lifecycle.job import JobKey
from deepgrid.sbatch import StoragePaths, render
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.submit.protocol import SubmitRequest
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deepgrid.workflow import parse
from tests.sbatch.slurm_support import RESOURCES, run, with_variable
from tests.sbatch.slurm_support import storage as storage
from tests.sbatch.support import without_progress
from tests.slurm.support import Box, ended
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


async def test_loops_launches_and_failures_with_real_steps(
    cluster: Cluster, monitor: SlurmMonitor, key: JobKey, box: Box, storage: StoragePaths
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
    assert without_progress(output) == ["launched", "caught 7", "finally", "task", "task", "ended"]


async def test_a_broken_step_deep_inside_leaves_no_process_and_no_folder(
    cluster: Cluster, monitor: SlurmMonitor, key: JobKey, box: Box, storage: StoragePaths
) -> None:  # fmt: skip
    mark = f"broken-{key.job_id}"
    text = f"""
env: [{{key: MARK, value: {mark}}}]
steps:
  - for:
      parallel: true
      items: [a, b]
      steps:
        - launch: {{steps: [{{run: {{command: 'touch launched-$item; sleep 1000 & wait'}}}}]}}
        - for:
            parallel: false
            range: {{begin: 0, end: 1}}
            steps:
              - run: {{command: 'until [ -e launched-a ] && [ -e launched-b ]; do sleep 0.1; done'}}
              - steps:
                  - run: {{command: 'test "$item$index" != b1 || exit 13; touch "at-$item$index"'}}
                  - run: {{command: 'test "$item$index" != a1 || exec sleep 1000'}}
                finally: [{{run: {{command: 'echo finally $item$index'}}}}]
    catch:
      - run: {{command: 'echo caught $DEEPSQUARE_ERROR_CODE; exit $((DEEPSQUARE_ERROR_CODE + 1))'}}
  - run: {{command: echo never}}
"""
    status, output = await run(parse(RESOURCES + text, "job").model, cluster, monitor, key, box, storage)
    own = [line for line in output.splitlines() if not line.startswith(("srun", "slurmstepd"))]
    assert status == 14
    assert own[-1] == "caught 13"
    assert set(own[:-1]) <= {f"finally {item}{index}" for item in "ab" for index in (0, 1)}
    assert {"finally a0", "finally b0", "finally b1"} <= set(own)
    assert with_variable(f"MARK={mark}") == []


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
