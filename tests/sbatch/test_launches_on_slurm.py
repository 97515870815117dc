"""Signals to launches on real clusters. The recorder that replaces `srun` elsewhere cannot show who gets a signal.

Slurm with `proctrack/cgroup`, which most sites use, signals only the first process of a task. With
`proctrack/linuxproc` it signals all processes. `srun` forwards only USR1 and USR2. On HUP, QUIT and TERM it has its
tasks killed.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from deepgrid.lifecycle.job import JobKey
from deepgrid.sbatch import Containers, StoragePaths
from deepgrid.sbatch.render import USUAL
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deepgrid.workflow import parse
from deployments.onemachine.slurm import ClusterSpec
from tests.sbatch.slurm_support import run, storage_of
from tests.sbatch.support import without_progress
from tests.slurm.support import Box, running_box

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

HEAD = "enableLogging: true\nresources: {tasks: 10, cpusPerTask: 1, memPerCpu: 100, gpus: 0}\nsteps:\n"
CATCHABLE = (1, 2, 3, 10, 12, 14, 15)
FREEZER = Path("/sys/fs/cgroup/freezer")


@dataclass
class Here:
    cluster: Cluster
    monitor: SlurmMonitor
    box: Box
    storage: StoragePaths

    async def run_steps(self, key: JobKey, steps: str, containers: Containers = USUAL) -> tuple[int, list[str]]:
        job = parse(HEAD + steps, "job").model
        status, output = await run(job, self.cluster, self.monitor, key, self.box, self.storage, None, containers)
        return status, without_progress(output)


@pytest.fixture(scope="module")
def tracking(box: Box) -> Iterator[Box]:
    """A cluster that tracks processes by cgroups."""
    if os.getuid() != 0 or not os.access(FREEZER, os.W_OK):
        pytest.skip("this machine has no cgroups that Slurm can use")
    with running_box(ClusterSpec("track", nodes=1, cpus_per_node=16, private=False, proctrack="cgroup")) as other:
        yield other


@pytest.fixture(params=["box", "tracking"], ids=["linuxproc", "cgroup"])
async def here(request: pytest.FixtureRequest) -> AsyncIterator[Here]:
    box: Box = request.getfixturevalue(request.param)
    login = Login(box.settings)
    cluster = Cluster(login, box.settings)
    monitor = SlurmMonitor(cluster, poll_s=0.2)
    yield Here(cluster, monitor, box, storage_of(box))
    await monitor.close()
    await login.close()


# Notes its signals, and ends when all programs have received one.
NAMES = ("1", "2a", "2b", "3", "10", "12a", "12b", "14", "15")
PROGRAM = f"""
import glob, pathlib, signal, sys, time
name, got = sys.argv[1], []
for number in {CATCHABLE}:
    signal.signal(number, lambda number, _: got.append(str(number)))
pathlib.Path("up-" + name).touch()
while not got:
    time.sleep(0.05)
pathlib.Path("got-" + name).touch()
while len(glob.glob("got-*")) < {len(NAMES)}:
    time.sleep(0.05)
print(name, "got", *got)
"""


def launch_of(number: int) -> str:
    step = f"{{run: {{command: 'python3 program {number}$item; echo never'}}}}"
    steps = f"{{for: {{parallel: true, items: [a, b], steps: [{step}]}}}}" if number in (2, 12) else step
    return f"  - launch: {{signalOnParentStepExit: {number}, steps: [{steps}]}}"


async def test_programs_get_the_signal_asked_for_once_and_can_end_slowly(here: Here, key: JobKey) -> None:
    """Two of the launches have a parallel loop of steps."""
    launches = "\n".join(map(launch_of, CATCHABLE))
    steps = f"""
  - run: {{command: 'printf %s "$PROGRAM" >program', env: [{{key: PROGRAM, value: {json.dumps(PROGRAM)}}}]}}
{launches}
  - run: {{command: 'until [ $(ls | grep -c ^up-) -eq {len(NAMES)} ]; do sleep 0.05; done'}}
"""
    status, lines = await here.run_steps(key, steps)
    assert (status, sorted(lines)) == (0, sorted(f"{name} got {name.rstrip('ab')}" for name in NAMES))


async def test_the_shell_of_a_step_can_trap_the_signal(here: Here, key: JobKey) -> None:
    """Each of the two ends only when the other one has received its signal too."""
    launches = "\n".join(
        f"""
  - launch:
      steps:
        - run:
            command: |
              exec 2>/dev/null # the shell tells of its sleep, which gets the signal too
              trap 'touch got-{own}; until [ -e got-{other} ]; do sleep 0.05; done; echo {own} saved; exit 0' TERM
              touch up-{own}
              while :; do sleep 0.05; done
        """
        for own, other in ("ab", "ba")
    )
    steps = f"""{launches}
  - run: {{command: 'until [ -e up-a ] && [ -e up-b ]; do sleep 0.05; done'}}
"""
    status, lines = await here.run_steps(key, steps)
    assert (status, sorted(lines)) == (0, ["a saved", "b saved"])


async def test_a_program_below_a_guarded_step_does_not_ignore_an_interrupt(here: Here, key: JobKey) -> None:
    """The shells there are in the background and ignore INT. What they start by srun must not."""
    status, lines = await here.run_steps(
        key,
        """
  - steps:
      - launch:
          signalOnParentStepExit: 2
          steps: [{run: {command: ': >up; exec sleep 1000'}}]
        finally: [{run: {command: 'echo ended $DEEPSQUARE_ERROR_CODE'}}]
      - run: {command: 'until [ -e up ]; do sleep 0.05; done'}
    finally: [{run: {command: echo last}}]
""",
    )
    assert (status, lines) == (0, ["ended 130", "last"])


async def test_a_launch_that_is_killed_leaves_no_program_on_its_node(here: Here, key: JobKey) -> None:
    """All nodes are this machine. Slurm does not end the tasks of an srun that was killed."""
    status, lines = await here.run_steps(
        key,
        """
  - steps:
      - launch:
          signalOnParentStepExit: 9
          steps: [{run: {command: 'trap "" TERM; echo $$ >pid; while :; do sleep 0.05; done'}}]
      - run: {command: 'until [ -s pid ]; do sleep 0.05; done'}
    finally: [{run: {command: echo ended}}]
  - run: {command: 'while kill -0 $(cat pid) 2>/dev/null; do sleep 0.05; done; echo gone'}
""",
    )
    assert (status, lines) == (0, ["ended", "gone"])


async def test_programs_in_containers_get_the_signal_and_can_end_slowly(
    here: Here, key: JobKey, containers: Containers
) -> None:
    """Apptainer passes signals on to the first process of its container: a shell around the program, or the program."""
    program = """
      exec 2>/dev/null
      trap 'echo $1 got it; touch got-$1' TERM
      touch up-$1
      until [ -e got-a ] && [ -e got-b ]; do sleep 0.05; done
      echo $1 saved
    """
    launches = "\n".join(
        f"""
  - launch:
      steps:
        - run:
            command: cd /deepsquare; {command}
            container: {{image: 'busybox:1.36', apptainer: true}}
        """
        for command in ("sh program a; echo never", "exec sh program b")
    )
    steps = f"""
  - run: {{command: 'printf %s "$PROGRAM" >program', env: [{{key: PROGRAM, value: {json.dumps(program)}}}]}}
{launches}
  - run: {{command: 'until [ -e up-a ] && [ -e up-b ]; do sleep 0.05; done'}}
"""
    status, lines = await here.run_steps(key, steps, containers)
    if here.box.name == "unit":
        lines = list(set(lines))  # without cgroups, Slurm itself signals Apptainer and the program
    assert (status, sorted(lines)) == (0, ["a got it", "a saved", "b got it", "b saved"])
