"""A Slurm batch script becomes a valid workflow file, and each line without a counterpart gets a remark."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from deepgrid.errors import InputError
from deepgrid.workflow import load, parse
from deepgrid.workflow.models import Definition, JobResources, StepRunResources
from deepgrid.workflow.slurm_import import import_script

SCRIPT = """\
#!/bin/bash -l
#SBATCH --job-name=wing
#SBATCH -N 2 --ntasks-per-node=4   # eight in all
#SBATCH -c 2
#SBATCH --mem 8G
#SBATCH --gres=gpu:a100:1
#SBATCH --time=01:30:00
#SBATCH -p long
#SBATCH --mail-type=END
#SBATCH --array=1-10
# a comment
module load openmpi
srun ./solve --input "$SLURM_SUBMIT_DIR/in"

#SBATCH --ntasks=99
echo "done"
"""


def imported(text: str) -> tuple[Definition, list[str]]:
    found = import_script(text)
    return parse(found.workflow, "job.yaml").model, [f"{line} {what}" for line, what in found.remarks]


def test_a_script_becomes_a_workflow_with_remarks() -> None:
    job, remarks = imported(SCRIPT)
    assert job.resources == JobResources(tasks=8, cpus_per_task=2, mem_per_cpu=1024, gpus=2)
    assert job.enable_logging
    assert job.steps[0].run is not None
    assert job.steps[0].run.resources == StepRunResources(gpus_per_task=1)
    assert job.steps[0].run.command == (
        '# a comment\nmodule load openmpi\nsrun ./solve --input "$SLURM_SUBMIT_DIR/in"\n\n'
        '#SBATCH --ntasks=99\necho "done"\n'
    )
    assert remarks == [
        "0 GPUs of the type a100: submit with --uses gpu=a100",
        "2 --job-name: submit with --job-name wing",
        "3 --nodes: the cluster chooses the nodes; ask for tasks, CPUs and memory",
        "7 --time: submit with --time 01:30:00",
        "8 --partition: see --uses or --affinities of dps submit",
        "9 --mail-type: it has no counterpart",
        "10 --array=1-10: submit with --array, which sets SLURM_ARRAY_TASK_ID",
        "12 modules of a site are not on other clusters; use a container, or uses",
        "13 the step has one task; make this line a step with resources: {tasks: 8}",
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("-n 4", (1, 4, 1000, 0)),
        ("-n4 -c2", (1, 8, 1000, 0)),
        ("-n 8 --mem=32G", (1, 8, 4096, 0)),
        ("-n 64", (1, 64, 1000, 0)),
        ("-n 65", (65, 1, 1000, 0)),
        ("-N 1 -n 65", (1, 65, 1000, 0)),
        ("--ntasks 4 --mem-per-cpu=500", (1, 4, 500, 0)),
        ("--ntasks=4 --mem-per-cpu=2G", (1, 4, 2048, 0)),
        ("--mem=1000 -n 3", (1, 3, 334, 0)),
        ("--mem=1500K", (1, 1, 2, 0)),
        ("-N 2-4 --ntasks-per-node=2", (4, 1, 1000, 0)),
        ("-n 16 --ntasks-per-node=8 --mem=64G --gpus-per-node=4", (16, 1, 8192, 8)),
        ("-n1000000", (1000000, 1, 1000, 0)),
        ("--gpus=3", (1, 1, 1000, 3)),
        ("-G 2", (1, 1, 1000, 2)),
        ("--gpus-per-task=2 -n 3", (1, 3, 1000, 6)),
        ("--gpus=2 --mem-per-gpu=40G -c 8", (1, 8, 10240, 2)),
        ("--gpus=2 --mem-per-gpu=1G -c 3", (1, 3, 683, 2)),
        ("--gpus=2 --cpus-per-gpu=6", (1, 12, 1000, 2)),
        ("--gres=gpu", (1, 1, 1000, 1)),
        ("--gres=gpu:0", (1, 1, 1000, 0)),
        ("--gres=none", (1, 1, 1000, 0)),
        ("--gres=gpu:2080ti:1", (1, 1, 1000, 1)),
        ("--gres=gpu:1g.5gb:1", (1, 1, 1000, 1)),
        ("--gres=gpu:a100", (1, 1, 1000, 1)),
        ("--gres=gres/gpu:2", (1, 1, 1000, 2)),
        ("--gres=gpu:2,tmp:100G", (1, 1, 1000, 2)),
        ("--gres=gpu:tesla:2,nvme:1", (1, 1, 1000, 2)),
        ("'--gres=gpu:a100:2(S:0,1)'", (1, 1, 1000, 2)),
        ("--gpus=a100:1,v100:1", (1, 1, 1000, 2)),
        ("--exclusive -n 2", (1, 2, 1000, 0)),
        ("--nodes=1 --tasks-per-node=3", (1, 3, 1000, 0)),
        ("-n 2 --cpus-per-ta=3", (1, 6, 1000, 0)),
        ("--ntasks-per-gpu=1 --gpus=4", (1, 4, 1000, 4)),
        ("--ntasks-per-gpu=2 --gpus=2 -c 3", (1, 12, 1000, 2)),
        ("--ntasks-per-gpu=2 --gpus=4 -n 8", (1, 8, 1000, 4)),
        ("--ntasks=8 --ntasks-per-gpu=2", (1, 8, 1000, 4)),
        ("-n 7 --ntasks-per-gpu=2 --gres=nvme:1", (1, 7, 1000, 4)),
        ("--ntasks=many", (1, 1, 1000, 0)),
        ('--comment="a \'b" -n 2', (1, 2, 1000, 0)),
        ("--comment=\"open -n 2", (1, 2, 1000, 0)),
    ],
)  # fmt: skip
def test_resources(options: str, expected: tuple[int, int, int, int]) -> None:
    job, remarks = imported(f"#!/bin/sh\n#SBATCH {options}\ntrue\n")
    found = job.resources
    assert (found.tasks, found.cpus_per_task, found.mem_per_cpu, found.gpus) == expected
    step = job.steps[0].run
    assert step is not None
    of_step = found.gpus if found.tasks == 1 else found.gpus // found.tasks or min(found.gpus, 1)
    assert step.resources_in(found).gpus_per_task == of_step
    assert any("asks for no memory" in what for what in remarks) == ("--mem" not in options)
    assert not any("is not used" in what for what in remarks)


@pytest.mark.parametrize(
    ("option", "remark"),
    [
        ("--gres=gpu:a100:x:1", "2 --gres=gpu:a100:x:1: is not understood; gpus is 0"),
        ("--gres=tmp:100G", "2 --gres=tmp:100G: it has no counterpart"),
        ("--gpus=", "2 --gpus=: is not understood; gpus is 0"),
        ("-c $N", "2 --cpus-per-task=$N: is not understood; cpusPerTask is 1"),
        ("-n=4", "2 --ntasks==4: is not understood; tasks is 1"),
        ("-N 1k", "2 --nodes=1k: is not understood; nodes is 1"),
        ("--mem=lots", "2 --mem=lots: is not understood; memPerCpu is 1000 MB"),
        ("--mem-per-gpu=1G", "2 --mem-per-gpu=1G: is not understood; memPerCpu is 1000 MB"),
        ("--exclusive", "2 --exclusive means whole nodes; write how many CPUs and how much memory it needs"),
        ("--ntasks-per-gpu=2", "2 --ntasks-per-gpu=2: is not used; tasks is 1, gpus is 0"),
        ("--ntasks-per-gpu=x -n 8", "2 --ntasks-per-gpu=x: is not used; tasks is 8, gpus is 0"),
        ("-n 8 --ntasks-per-gpu=2 -G 0", "2 --ntasks-per-gpu=2: is not used; tasks is 8, gpus is 0"),
        ("--ntasks-per-gpu=2 -n 4 -G 4", "2 --ntasks-per-gpu=2: is not used; tasks is 4, gpus is 4"),
        ("--ntasks-per-gpu=2 -N 2 --ntasks-per-node=4", "2 --ntasks-per-gpu=2: is not used; tasks is 8, gpus is 0"),
        ("--mem=0", "2 --mem=0 means a whole node; write how much it needs"),
        ("--time=90", "2 --time: submit with --time 90m"),
        ("--time=1-12", "2 --time: submit with --time 1-12"),
        ("--time=UNLIMITED", "2 --time=UNLIMITED: a job runs for the time that is paid for; submit with --time TIME"),
        ("--time 0", "2 --time=0: a job runs for the time that is paid for; submit with --time TIME"),
        ("-D /scratch/me/run", "0 paths of one's home or scratch do not exist at other sites; use input and output"),
        ("-n 8", "0 the script runs on one node, as one task with all 8 CPUs"),
        ("-N 2", "0 the step has one task; what all tasks run is a step with resources: {tasks: 2}"),
        (
            "-N 2 --gpus-per-node=4",
            "0 the step has one task; what all tasks run is a step with resources: {tasks: 2, gpusPerTask: 4}",
        ),
    ],
)
def test_what_is_not_taken_over_is_said(option: str, remark: str) -> None:
    _, remarks = imported(f"#!/bin/sh\n#SBATCH {option}\ntrue\n")
    assert remark in remarks
    assert not any("asks for no memory" in what for what in remarks if "--mem" in option)


def test_an_array_sets_its_variable() -> None:
    _, remarks = imported("#!/bin/sh\n#SBATCH -a 1-3\necho $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_JOB_ID\n")
    assert [what for what in remarks if "SLURM_ARRAY" in what] == [
        "0 the grid does not set SLURM_ARRAY_JOB_ID",
        "2 --array=1-3: submit with --array, which sets SLURM_ARRAY_TASK_ID",
    ]


def test_the_parts_of_a_heterogeneous_job_are_not_merged() -> None:
    text = "#!/bin/sh\n#SBATCH -n 2\n#SBATCH hetjob\n#SBATCH -n 32 --gpus=1\nsrun a : b\n"
    for word in ("hetjob", "packjob"):
        job, remarks = imported(text.replace("hetjob", word))
        assert (job.resources.cpus_per_task, job.resources.gpus) == (2, 0)
        assert any(what.startswith("3 all tasks of a job have one size") for what in remarks)
        assert job.steps[0].run is not None and "#SBATCH" not in job.steps[0].run.command


def test_scripts_within_the_script_stay_whole() -> None:
    inner = "cat >inner.sh <<'E'\n#!/bin/bash\n#SBATCH -n 4\nE\n"
    job, _ = imported(f"#!/bin/bash\n#SBATCH -c 2\n# first\n{inner}")
    assert job.steps[0].run is not None and job.steps[0].run.command == f"# first\n{inner}"


@pytest.mark.parametrize("starts", ["srun ./solve", "time mpirun ./solve", "make -j$SLURM_NTASKS"])
def test_programs_of_a_script_on_one_node_see_all_its_tasks(starts: str) -> None:
    job, _ = imported(f"#!/bin/bash -e\n#SBATCH -n 4 -c 2\n{starts}\n")
    assert job.steps[0].run is not None
    first, _, *rest = job.steps[0].run.command.splitlines()
    assert {"SLURM_NTASKS=4", "SLURM_NPROCS=4", "SLURM_TASKS_PER_NODE=4", "SLURM_CPUS_PER_TASK=2"} <= set(first.split())
    assert rest == ["set -e", starts]


@pytest.mark.parametrize(
    ("first", "does"),
    [
        ("#!/bin/bash -e", "set -e"),
        ("#!/bin/bash -leu", "set -e -u"),
        ("#!/bin/bash --login -x", "set -x"),
        ("#!/bin/sh -e", "set -e"),
        ("#!/bin/bash -euo pipefail", "set -e -u -o pipefail"),
        ("#!/bin/bash -o pipefail -", "set -o pipefail"),
        ("#!/usr/bin/env -S bash -e", "set -e"),
        ("#!/usr/bin/env -Sbash -e", "set -e"),
        ("#!/bin/ksh -f", "set -f"),
        ("#!/bin/bash -l", ":"),
    ],
)
def test_the_options_of_the_shell_stay(first: str, does: str) -> None:
    job, remarks = imported(f"{first}\n:\nfalse\necho went on\n")
    run = job.steps[0].run
    assert run is not None and run.command.splitlines()[0] == does
    assert not any("left out" in what for what in remarks)
    if "-e" in does.split():
        done = subprocess.run([str(run.shell), "-c", run.command], check=False, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (1, "")


@pytest.mark.parametrize(
    ("first", "remark"),
    [
        ("#!/bin/bash -r", "1 the option -r of the shell is left out"),
        ("#!/bin/bash --posix", "1 the option --posix of the shell is left out"),
        ("#!/bin/bash -o", "1 the option -o of the shell is left out"),
        ("#!/usr/bin/env -S -i A=1 bash", "1 A=1 of env is left out"),
    ],
)
def test_other_options_of_the_first_line_are_said(first: str, remark: str) -> None:
    job, remarks = imported(f"{first}\n:\n")
    assert remark in remarks
    assert job.steps[0].run is not None and job.steps[0].run.command == ":\n"


@pytest.mark.parametrize(
    "body", ["", "\n\n", "  indented\n\ttab\n", "cat <<EOF\n  a\n\n b\nEOF\n", "echo 'é\\n\" {{ x }} #'\n"]
)
def test_commands_stay_what_they_are(body: str) -> None:
    run = imported(f"#!/bin/bash\n{body}")[0].steps[0].run
    assert run is not None
    assert run.command.strip("\n") == body.strip("\n")


def test_other_shells_are_replaced_and_said() -> None:
    job, remarks = imported("#!/usr/bin/env zsh\n:\n")
    assert job.steps[0].run is not None and job.steps[0].run.shell == "/bin/bash"
    assert "1 the shell zsh is replaced by /bin/bash" in remarks


@pytest.mark.parametrize("first", ["#!/usr/bin/env python3", "#! /usr/bin/python3 -u", "#!/usr/bin/env -S python3 -u"])
def test_scripts_of_other_interpreters_run_by_them(first: str) -> None:
    job, remarks = imported(f"{first}\n#SBATCH -n 1\nprint('END_OF_SCRIPT', 3)\n")
    run = job.steps[0].run
    assert run is not None and run.shell == "/bin/bash"
    done = subprocess.run(["/bin/bash", "-c", run.command], check=True, capture_output=True, text=True)
    assert done.stdout == "END_OF_SCRIPT 3\n"
    assert "1 the script is read by python3, which the cluster must have; or use a container" in remarks


@pytest.mark.parametrize(
    "command",
    [
        "echo 'a\x0cb'\n",
        "echo 🚀 \x1b \xa0 👩\u200d🚀\n",
        "echo x  \n  y \n",
        "echo \u2028\n",
        "\techo\x1b[0m\n",
    ],
)
def test_odd_characters_and_spaces_stay(command: str) -> None:
    run = imported(f"#!/bin/bash\n#SBATCH -c 0 --chdir=run\n{command}")[0].steps[0].run
    assert run is not None and (run.command, run.work_dir) == (command, None)


def test_a_script_with_line_ends_of_windows() -> None:
    job, _ = imported("#!/bin/bash\r\n#SBATCH -n 4\r\necho hi\r\n")
    assert job.resources.cpus_per_task == 4
    assert job.steps[0].run is not None and job.steps[0].run.command == "echo hi\n"


def test_a_file_that_is_no_script_and_a_script_where_a_workflow_is_wanted(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no batch script"):
        import_script("resources: {}\n")
    script = tmp_path / "job.sh"
    script.write_text(SCRIPT)
    with pytest.raises(InputError, match="is a Slurm batch script") as caught:
        load(script)
    assert "dps import" in str(caught.value.next_step)


def test_options_after_an_indented_comment_count_as_for_sbatch() -> None:
    job, remarks = imported(
        "#!/bin/bash\n#SBATCH -n 4\n  # a comment\n\t#\n#SBATCH -c 3\n#SBATCH --mem-per-cpu=2G\ntrue\n"
    )
    assert job.resources == JobResources(tasks=1, cpus_per_task=12, mem_per_cpu=2048, gpus=0)
    assert not any("guess" in remark for remark in remarks)


def test_remarks_name_options_as_they_are_written() -> None:
    _, remarks = imported("#!/bin/bash\n#SBATCH -C avx2 -K --dependency=afterok:7\ntrue\n")
    assert "2 -K: it has no counterpart" in remarks
    assert any("--dependency: see --after or --after-any of dps submit" in remark for remark in remarks)
