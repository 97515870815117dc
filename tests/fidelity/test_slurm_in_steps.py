"""Steps that were pasted from Slurm's batch scripts, and tasks that fail alone."""

from __future__ import annotations

import pytest

from deepgrid.workflow.advice import advice_on
from deepgrid.workflow.models import Step, StepRun
from deepgrid.workflow.slurm_import import import_script
from tests.fidelity.conftest import RealSite

FOUR = "enableLogging: true\nresources: {tasks: 4, cpusPerTask: 1, memPerCpu: 128, gpus: 0}\n"


@pytest.mark.long
@pytest.mark.situation("steps", "`srun` inside a step", "it runs at once, and shares the step's CPUs and memory")
@pytest.mark.situation("steps", "several `srun` at once inside a step", "they run side by side")
@pytest.mark.situation("steps", "`mpirun` inside a step", "it starts its processes on the step's CPUs")
async def test_srun_and_mpirun_run_inside_a_step(site: RealSite) -> None:
    text = """
steps:
  - run: {command: "srun python3 -c 'print(1)'"}
  - run:
      command: |
        for i in 2 3; do srun sh -c "touch at-$i; until [ -e at-2 -a -e at-3 ]; do sleep 0.1; done" & done
        wait
  - run: {command: 'ls | grep -c ^at-; mpirun --oversubscribe -n 2 echo 4'}
"""
    assert await site.run(text) == (0, ["1", "2", "4", "4"])


@pytest.mark.long
@pytest.mark.situation("steps", "`srun` and `mpirun` in an imported script of 3 tasks", "they start its 3 tasks")
async def test_programs_of_an_imported_script_use_all_its_tasks_and_gpus(site: RealSite) -> None:
    script = """#!/bin/bash -e
#SBATCH -n 3 -c 2 --mem=600M --gres=gpu:fake:1
echo $SLURM_CPUS_ON_NODE
srun sh -c 'echo $SLURM_NTASKS $SLURM_CPUS_PER_TASK $CUDA_VISIBLE_DEVICES'
srun -n 2 echo two
srun -n 1 --gpus=1 echo one
mpirun --oversubscribe sh -c 'echo of $OMPI_COMM_WORLD_SIZE'
false
echo never
"""
    status, lines = await site.run(import_script(script).workflow, header="")
    assert (status, lines) == (1, ["6", *["3 2 0"] * 3, "two", "two", "one", *["of 3"] * 3])


@pytest.mark.situation(
    "steps", "`#SBATCH` lines, `sbatch` and `salloc` in a command", "`dps validate` warns, and names the field to use"
)
def test_lines_of_batch_scripts_are_named_with_the_field_that_replaces_them() -> None:
    command = """#!/bin/bash
#SBATCH --ntasks=4 --time 10 # --mem
#SBATCH -t 1:00:00
#SBATCH --begin=now
  #SBATCH --ntasks 4
sbatch other.sh
if true; then salloc -n 1; fi
srun --mem-per-cpu=10M true
"""
    found = [what for _, what in advice_on(Step(run=StepRun(command=command)))]
    assert found == [
        "begins with #! and bash, which has no effect here: /bin/sh runs it; write shell: /bin/bash",
        "contains #SBATCH --ntasks, which has no effect here; use resources.tasks of the job and of run",
        "contains #SBATCH --time, which has no effect here; use --time of dps submit",
        "contains #SBATCH -t, which has no effect here; use --time of dps submit",
        "contains #SBATCH --begin, which has no effect here; no field replaces it",
        "calls sbatch, but a job cannot start further jobs on most clusters; use steps, launch or for",
        "calls salloc, but a job cannot start further jobs on most clusters; use steps, launch or for",
        "calls srun with --mem-per-cpu, which Slurm may refuse inside a step; use --mem",
    ]


@pytest.mark.situation("steps", "`sbatch <<EOF`, even by path, variable or `xargs`", "`dps validate` warns")
@pytest.mark.parametrize(
    "command",
    ["sbatch<<E\n:\nE", "/usr/bin/sbatch x", "A=1 sbatch x", "if sbatch x; then :; fi", "! sbatch x",
     "ls | xargs sbatch", "sudo sbatch x", "x=$(sbatch x)"],
)  # fmt: skip
def test_ways_to_call_sbatch(command: str) -> None:
    (found,) = [what for _, what in advice_on(Step(run=StepRun(command=command)))]
    assert found.startswith("calls sbatch, but a job cannot start further jobs")


@pytest.mark.situation("steps", "lines and programs of other batch systems (`#PBS`, `qsub`)", "`dps validate` warns")
@pytest.mark.parametrize("mark", ["#PBS", "#BSUB", "#$"])
def test_lines_of_other_batch_systems(mark: str) -> None:
    found = [what for _, what in advice_on(Step(run=StepRun(command=f"{mark} -n 4\nqsub other.sh")))]
    assert (
        found[0]
        == f"contains {mark} lines of another batch system, which have no effect here; use resources of the job"
    )
    assert found[1].startswith("calls qsub, but a job cannot")


@pytest.mark.parametrize(
    "command",
    [
        "# if sbatch",
        "grep -v sbatch",
        "./sbatch x",
        "# ask for #SBATCH first",
        "echo sbatch",
        "./sbatch.sh",
        "srun -n 2 ./a",
        "man srun",
    ],
)
def test_other_commands_are_not_warned_of(command: str) -> None:
    assert list(advice_on(Step(run=StepRun(command=command)))) == []


def step(own: str) -> str:
    command = "[ $SLURM_PROCID != 1 ] || exit 7; sleep $LEFT && echo went on"
    return f"run: {{command: '{command}', resources: {{tasks: 4}}, {own}}}"


@pytest.mark.long
@pytest.mark.situation("steps", "one of four MPI tasks fails", "the others end at once, and the step fails")
@pytest.mark.situation("steps", "one task fails, with `killOnBadExit`", "the others end at once without `mpi`, too")
@pytest.mark.situation("steps", "one task fails, with `killOnBadExit: false`", "the others finish, even with `mpi`")
async def test_a_failed_task_ends_the_others(site: RealSite) -> None:
    ended = "[{run: {command: 'echo caught'}}]"
    text = f"""
steps:
  - {step("mpi: pmi2, env: [{key: LEFT, value: 1000}]")}
    catch: {ended}
  - {step("killOnBadExit: true, env: [{key: LEFT, value: 1000}]")}
    catch: {ended}
  - {step("mpi: pmi2, killOnBadExit: false, env: [{key: LEFT, value: 1}]")}
    catch: [{{run: {{command: 'echo caught $DEEPSQUARE_ERROR_CODE'}}}}]
"""
    assert await site.run(text, header=FOUR) == (0, ["caught", "caught", *["went on"] * 3, "caught 7"])
