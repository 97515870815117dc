"""Processes that steps and launches leave, and how they end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fidelity.conftest import ENROOT, RealSite

TWO = "enableLogging: true\nresources: {tasks: 2, cpusPerTask: 1, memPerCpu: 128, gpus: 0}\n"
SEVEN = TWO.replace("tasks: 2", "tasks: 7")
LEFT = "deepgrid: the step left processes behind, which were ended: "


@pytest.mark.long
@pytest.mark.situation(
    "processes", "a step leaves a process behind (`sleep 300 &`)", "it is ended with the step, and the log names it"
)
@pytest.mark.situation(
    "processes", "two tasks leave processes with sessions of their own, deaf to signal 15", "they are killed and named"
)
@pytest.mark.situation(
    "processes", "two tasks leave processes without variables (`env -i`)", "they are ended with the step, and named"
)
@pytest.mark.situation("processes", "a stopped process, left by a killed step", "they are ended and named")
@pytest.mark.situation(
    "processes",
    "the output of a step goes through a filter that is slower than the step",
    "the filter finishes its work",
)
async def test_processes_that_a_step_leaves_end_with_it(site: RealSite) -> None:
    deaf = """trap "" TERM; echo $$ >>pids; while :; do sleep 0.1; done"""
    named = "until grep -q sleep /proc/$!/comm; do :; done"  # it has begun its program
    alive = "for pid in $(cat pids); do ! grep -q State:.[^Z] /proc/$pid/status || exit 1; done 2>/dev/null"
    text = f"""
steps:
  - run: {{command: 'sleep 300 & {named}; echo one'}}
  - run: {{command: "setsid sh -c '$DEAF' & sleep 0.3", resources: {{tasks: 2}}, env: [{{key: DEAF, value: '{deaf}'}}]}}
  - run: {{command: '{alive}; wc -l <pids'}}
  - run: {{command: 'env -i sleep 301 & {named}; sleep $SLURM_PROCID', resources: {{tasks: 2}}}}
  - run: {{command: 'setsid sleep 302 & {named}; kill -STOP $!; kill -KILL $$'}}
    catch: [{{run: {{command: 'echo $DEEPSQUARE_ERROR_CODE'}}}}]
  - run: {{command: 'exec > >(sleep 1; cat >filtered); echo two', shell: /bin/bash}}
  - run: {{command: cat filtered}}
"""
    text = text.replace("""sh -c '$DEAF'""", 'sh -c \\"$DEAF\\"')
    status, lines = await site.run(text, header=TWO)
    assert status == 0, lines
    assert lines == ["one", LEFT + "sleep", lines[2], "2", *[LEFT + "sleep"] * 2, "137", "two"]
    assert lines[2] in (LEFT + "sh", LEFT + "sh, sleep")


@pytest.mark.long
@pytest.mark.situation(
    "processes", "a step ends on a node where another cluster runs a job of the same number", "that job runs on"
)
async def test_a_job_of_another_cluster_with_the_same_number_runs_on(site: RealSite) -> None:
    """Two controllers count jobs alike, and may share nodes and an account."""
    other = "env SLURM_STEP_LAUNCHER_PORT=1 setsid sleep 303"
    begun = "until grep -q sleep /proc/$!/comm; do :; done"
    text = f"""
steps:
  - run: {{command: '{other} & {begun}; echo $! >other; sleep 304 & {begun}'}}
  - run: {{command: 'kill $(cat other) && echo alive'}}
"""
    status, lines = await site.run(text, header=TWO)
    assert (status, lines) == (0, [LEFT + "sleep", "alive"])


TRAPPING = """
exec 2>/dev/null; trap 'echo got TERM; sleep 1; echo {}; exit 0' TERM; touch up-{}; while :; do sleep 0.1; done
""".strip()
CONTAINED = "container: {image: 'some/image:1'}"


@pytest.mark.long
@pytest.mark.situation(
    "processes",
    "a launch traps TERM, and writes its data before it ends",
    "the program gets the signal, and ends in time",
)
@pytest.mark.situation(
    "processes", "a server that a launch starts by `exec`, which ends by INT", "it gets the signal, and not its `srun`"
)
@pytest.mark.situation(
    "processes", "a launch with an Enroot container (a stand-in), inside a group that fails", "its program gets TERM"
)
async def test_launches_get_their_signal(site: RealSite) -> None:
    programs = Path(site.storage.world_tmp) / "programs"
    programs.mkdir(mode=0o755)
    (programs / "enroot").write_text(ENROOT)
    (programs / "enroot").chmod(0o755)
    server = "import pathlib, signal\npathlib.Path('up-b').touch()\ntry: signal.pause()\n"
    server += "except KeyboardInterrupt: print('stopped')"
    text = f"""
steps:
  - launch: {{steps: [{{run: {{command: "{TRAPPING.format("flushed", "a")}"}}}}]}}
  - launch:
      signalOnParentStepExit: 2
      steps: [{{run: {{command: 'exec python3 -c "$SERVER"', env: [{{key: SERVER, value: {json.dumps(server)}}}]}}}}]
  - steps:
      - launch: {{steps: [{{run: {{command: "{TRAPPING.format("contained", "c")}", {CONTAINED}}}}}]}}
      - run: {{command: 'until [ -e up-a ] && [ -e up-b ] && [ -e up-c ]; do sleep 0.1; done; exit 3'}}
    catch: [{{run: {{command: echo caught}}}}]
  - run: {{command: 'echo last'}}
"""
    status, lines = await site.run(text, header=SEVEN, programs=programs)
    assert status == 0, lines
    assert lines[:4] == ["got TERM", "contained", "caught", "last"]
    assert sorted(lines[4:]) == ["flushed", "got TERM", "stopped"]
