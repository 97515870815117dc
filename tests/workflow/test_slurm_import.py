"""A Slurm batch script becomes a valid workflow file, and each line without a counterpart gets a remark."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from deepgrid.errors import InputError
from deepgrid.workflow import load, parse
from deepgrid.workflow.models import Definition, JobResources
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
    assert job.steps[0].run.command == (
        '# a comment\nmodule load openmpi\nsrun ./solve --input "$SLURM_SUBMIT_DIR/in"\n\necho "done"\n'
    )
    assert remarks == [
        "0 GPUs of the type a100: submit with --uses gpu=a100",
        "0 the grid does not set SLURM_SUBMIT_DIR",
        "2 --job-name: submit with --job-name wing",
        "3 --nodes: the cluster chooses the nodes; ask for tasks, CPUs and memory",
        "7 --time: submit with --min-time 01:30:00, or with enough credits for it",
        "8 --partition: see the wishes of dps submit",
        "9 --mail-type: it has no counterpart",
        "10 --array=1-10: submit with --array, which sets SLURM_ARRAY_TASK_ID",
        "12 modules of a site are not on other clusters; use a container, or uses",
        "13 steps with resources.tasks start their command once per task",
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("-n 4", (4, 1, 1000, 0)),
        ("-n4 -c2", (4, 2, 1000, 0)),
        ("--ntasks 4 --mem-per-cpu=500", (4, 1, 500, 0)),
        ("--ntasks=4 --mem-per-cpu=2G", (4, 1, 2048, 0)),
        ("--mem=1000 -n 3", (3, 1, 334, 0)),
        ("-N 2-4 --ntasks-per-node=2", (4, 1, 1000, 0)),
        ("--gpus=3", (1, 1, 1000, 3)),
        ("-G 2", (1, 1, 1000, 2)),
        ("--gpus-per-task=2 -n 3", (3, 1, 1000, 6)),
        ("--gres=gpu", (1, 1, 1000, 1)),
        ("--exclusive -n 2", (2, 1, 1000, 0)),
        ("--ntasks=many", (1, 1, 1000, 0)),
        ('--comment="a \'b" -n 2', (2, 1, 1000, 0)),
        ("--comment=\"open -n 2", (2, 1, 1000, 0)),
    ],
)  # fmt: skip
def test_resources(options: str, expected: tuple[int, int, int, int]) -> None:
    found = imported(f"#!/bin/sh\n#SBATCH {options}\ntrue\n")[0].resources
    assert (found.tasks, found.cpus_per_task, found.mem_per_cpu, found.gpus) == expected


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


@pytest.mark.parametrize("command", ["echo 'a\x0cb'\n", "echo x  \n  y \n", "echo \u2028\n", "\techo\x1b[0m\n"])
def test_odd_characters_and_spaces_stay(command: str) -> None:
    run = imported(f"#!/bin/bash\n#SBATCH -c 0 --chdir=run\n{command}")[0].steps[0].run
    assert run is not None and (run.command, run.work_dir) == (command, None)


def test_a_script_with_line_ends_of_windows() -> None:
    job, _ = imported("#!/bin/bash\r\n#SBATCH -n 4\r\necho hi\r\n")
    assert job.resources.tasks == 4
    assert job.steps[0].run is not None and job.steps[0].run.command == "echo hi\n"


def test_a_file_that_is_no_script_and_a_script_where_a_workflow_is_wanted(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no batch script"):
        import_script("resources: {}\n")
    script = tmp_path / "job.sh"
    script.write_text(SCRIPT)
    with pytest.raises(InputError, match="is a Slurm batch script") as caught:
        load(script)
    assert "dps import" in str(caught.value.next_step)
