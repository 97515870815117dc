"""A rendered script does what its definition says, with `srun` replaced by a recorder.

The recorder saves its environment and arguments byte for byte, then runs the command.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from deepgrid import modules
from deepgrid.errors import ConfigurationError, InputError
from deepgrid.sbatch import GUARD_MARK, StoragePaths, render
from deepgrid.services.script_check import check_script
from tests.sbatch.support import Bench, job, lint

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
LARGE = {"container", "container-enroot", "deep", "depends-on", "module", "network-virtual", "network-wireguard", "s3"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_scripts_of_the_examples_pass_bash_and_shellcheck(path: Path) -> None:
    """As the services check them, in parts. Those with most constructs are also checked as a whole."""
    job = modules.load(path).model
    lint(job)
    script = render(job, StoragePaths())
    if path.stem in LARGE:
        check_script(script)
    assert script.splitlines()[:2] == ["#!/bin/bash -l", GUARD_MARK]


@pytest.mark.deep
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_whole_scripts_of_the_examples_pass_shellcheck(path: Path) -> None:
    """Their two parts share variables, which the services do not check."""
    check_script(render(modules.load(path).model, StoragePaths()))


def test_resource_figures_are_exported(bench: Bench) -> None:
    figures = "tasks: 1, cpusPerTask: 8, memPerCpu: 400, gpus: 1"
    call = bench.run(job("- run: {command: ':'}", figures=figures)).calls[0]
    names = ["NTASKS", "CPUS_PER_TASK", "MEM_PER_CPU", "GPUS", "GPUS_PER_TASK", "CPUS", "MEM"]
    assert [call.env[name.encode()] for name in names] == [b"1", b"8", b"400", b"1", b"1", b"8", b"3200"]


@pytest.mark.recorder("a node of the cluster has one GPU")
def test_each_step_passes_its_options_to_srun(bench: Bench) -> None:
    steps = """
    - run: {command: ':'}
    - name: all figures
      run: {command: ':', shell: /bin/bash, resources: {tasks: 2, cpusPerTask: 3, memPerCpu: 5, gpusPerTask: 1}}
    """
    first, second = bench.run(job(steps, figures="tasks: 2, cpusPerTask: 8, memPerCpu: 1000, gpus: 2")).calls
    figures = b"--cpus-per-task=8 --mem-per-cpu=1000M --gpus-per-task=0 --gpus=0 --ntasks=1 --nodes=1"
    export = b"--export=ALL,SLURM_OVERLAP=1,SLURM_EXPORT_ENV=ALL"
    shell = [b"/bin/sh", b"-c", b"--"]
    epilog = b"--task-epilog=%s/.epilog" % first.env[b"STORAGE_PATH"]
    assert first.argv[:-1] == [export, *figures.split(), epilog, *shell]
    figures = b"--cpus-per-task=3 --mem-per-cpu=5M --gpus-per-task=1 --gpus=2 --ntasks=2"
    assert second.argv[:-1] == [b"--job-name=all figures", export, *figures.split(), epilog, b"/bin/bash", *shell[1:]]
    assert (first.command, second.command) == (b":", b":")


def test_a_failing_step_ends_the_job_with_its_status_and_leaves_nothing(bench: Bench) -> None:
    outcome = bench.run(job("- run: {command: 'exit 3'}\n- name: never\n  run: {command: ':'}"))
    assert (outcome.status, len(outcome.calls)) == (3, 1)
    assert "never" not in outcome.output
    assert bench.left_behind() == []


def test_steps_run_in_order_and_print_their_names(bench: Bench) -> None:
    outcome = bench.run(job("- {name: one, run: {command: echo a}}\n- {name: only a name}\n- run: {command: echo b}"))
    assert outcome.output.splitlines() == ["Running: one", "a", "Running: only a name", "b"]


def test_storage_is_private_and_removed_even_when_a_step_locks_it(bench: Bench) -> None:
    command = """stat -c %a "$STORAGE_PATH" "$DEEPSQUARE_INPUT" "$DEEPSQUARE_OUTPUT" "$DEEPSQUARE_DISK_TMP"; pwd
      touch "$DEEPSQUARE_TMP/kept"; mkdir locked; touch locked/file; chmod 0 locked"""
    outcome = bench.run(job(f"- run:\n    command: |\n      {command}\n"))
    *modes, folder = outcome.output.splitlines()
    assert modes == ["700"] * 4
    assert re.fullmatch(rf"{bench.storage.job}/{os.getuid()}/0x1\.[0-9]+", folder)
    assert bench.left_behind() == []
    assert (Path(bench.storage.user_tmp) / f"user-{os.getuid()}" / "kept").exists()


@pytest.mark.parametrize("root", ["job", "user_tmp", "disk_tmp"])
def test_a_storage_folder_that_is_a_link_is_not_used(tmp_path: Path, root: str) -> None:
    bench, victim = Bench(tmp_path / "bench"), tmp_path / "victim"
    victim.mkdir(mode=0o755)
    name = str(os.getuid()) if root == "job" else f"user-{os.getuid()}"
    (Path(getattr(bench.storage, root)) / name).symlink_to(victim)
    command = 'touch "$STORAGE_PATH/f" "$DEEPSQUARE_TMP/f" "$DEEPSQUARE_DISK_TMP/f"'
    outcome = bench.run(job(f"- run: {{command: '{command}'}}"))
    assert (outcome.status, outcome.output) == (0, "")
    assert victim.stat().st_mode & 0o777 == 0o755
    assert list(victim.iterdir()) == []
    assert [path.name for path in Path(getattr(bench.storage, root)).iterdir()] == [name], "its files are gone"


def test_a_missing_storage_root_is_reported_and_not_created(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "bench")
    Path(bench.storage.disk_tmp).rmdir()
    outcome = bench.run(job("- run: {command: ':'}"))
    assert outcome.status == 1
    assert f"{bench.storage.disk_tmp}/user-" in outcome.output
    assert not Path(bench.storage.disk_tmp).exists()
    assert bench.left_behind() == []


@pytest.mark.recorder("pretends a second node")
def test_each_further_node_gets_its_private_disk_folder(bench: Bench) -> None:
    outcome = bench.run(job("- run: {command: ':'}"), SLURM_JOB_NUM_NODES="2")
    assert outcome.status == 0
    assert [outcome.calls[0].option(name) for name in ("nodes", "ntasks", "gpus")] == [b"2", b"2", b"0"]


def test_a_disk_folder_of_another_account_on_another_node_is_not_used(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "bench", execute=False)
    srun = bench.root / "bin" / "srun"
    srun.write_text(srun.read_text() + f'\n[ "$DEEPSQUARE_DISK_TMP" != {bench.storage.disk_tmp}/user-{os.getuid()} ]\n')
    outcome = bench.run(job("- run: {command: ':'}"), SLURM_JOB_NUM_NODES="2")
    assert (outcome.status, outcome.output) == (0, "")
    _, *used = [call.env[b"DEEPSQUARE_DISK_TMP"].decode() for call in outcome.calls]
    assert len(used) == 2
    assert len({*used}) == 1
    assert not Path(used[0]).exists()


def test_the_working_folder_is_created_and_entered(bench: Bench) -> None:
    folder = bench.root / "made $(touch canary)" / "-here's"
    steps = f"- run: {{command: 'pwd; exit 4', shell: /bin/bash, workDir: \"{folder}\"}}"
    outcome = bench.run(job(steps))
    assert (outcome.status, outcome.output.splitlines()) == (4, [str(folder)])


def test_a_working_folder_that_cannot_be_entered_fails_the_step(bench: Bench) -> None:
    outcome = bench.run(job("- run: {command: ':', workDir: /dev/null/x}"))
    assert outcome.status == 1
    assert "change dir to working directory failed" in outcome.output


def test_variables_appended_to_the_env_file_reach_later_steps(bench: Bench) -> None:
    write = r"""
    - run:
        command: |
          cat >>"$DEEPSQUARE_ENV" <<'END'
          PLAIN=a, b = 'c' $(id) \n
          EMPTY=
          # NOT=this
          not a variable
          NOT-A-NAME=x
          1NOT=x
          RANDOM=x[$(touch canary)]
          MANY<<STOP
          first
           KEY=second

          STOP
          TWICE=1
          TWICE=2
          OVER=file
          BARE<<
          END
          printf LAST=unfinished >>"$DEEPSQUARE_ENV"
    - run: {command: ':', env: [{key: OVER, value: step}, {key: OWN, value: s}]}
    - run: {command: ':'}
    """
    env_of_job = "[{key: OVER, value: job}, {key: DEEPSQUARE_ENV, value: /elsewhere}]"
    before = bench.run(job(write.replace('"$DEEPSQUARE_ENV"', "./env"), env=env_of_job)).calls
    second, third = before[1].env, before[2].env
    expected = {
        b"PLAIN": b"a, b = 'c' $(id) \\n", b"EMPTY": b"", b"MANY": b"first\n KEY=second\n", b"TWICE": b"2",
        b"LAST": b"unfinished",
    }  # fmt: skip
    assert {key: second.get(key) for key in expected} == expected
    assert not {b"NOT", b"NOT-A-NAME", b"1NOT", b"RANDOM", b"BARE"} & second.keys()
    assert (second[b"OVER"], third[b"OVER"]) == (b"step", b"file")
    assert b"OWN" not in third


@pytest.mark.recorder("a cluster has srun")
def test_a_job_without_srun_reports_it(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "bash").symlink_to("/bin/bash")
    outcome = bench.run(job("- run: {command: ':'}"), PATH=str(tmp_path))
    assert outcome.status == 127
    assert "srun is not in PATH" in outcome.output


@pytest.mark.recorder("a real step is no child of the script")
def test_a_signal_removes_the_storage(bench: Bench) -> None:
    outcome = bench.run(job("- run: {command: 'kill -TERM $(ps -o ppid= -p $$); sleep 0.1'}"))
    assert outcome.status == 143
    assert bench.left_behind() == []


@pytest.mark.parametrize("root", ["", "relative", "$HOME/x", "/a\0b"])
def test_storage_roots_must_be_absolute(root: str) -> None:
    with pytest.raises(ConfigurationError):
        StoragePaths(job=root)


def test_the_check_refuses_broken_and_careless_scripts() -> None:
    with pytest.raises(InputError, match="not valid bash"):
        check_script("#!/bin/bash\nif true; then\n")
    with pytest.raises(InputError, match=r"2:.*SC2154") as caught:
        check_script('#!/bin/bash\nrm -rf "$s3cret"\n')
    assert "rm -rf" not in caught.value.message
    with pytest.raises(InputError, match="4 MiB"):
        check_script("#" * (4 * 1024 * 1024))


def test_no_step_shares_its_environment_with_the_next(bench: Bench) -> None:
    outcome = bench.run(job("- run: {command: ':', env: [{key: TOKEN, value: t}]}\n- run: {command: ':'}"))
    assert b"TOKEN" in outcome.calls[0].env
    assert b"TOKEN" not in outcome.calls[1].env
    assert not re.search(r"^export TOKEN", render(job("- run: {command: ':'}"), bench.storage), re.M)


@pytest.mark.situation("steps", "a step with a name of 3,000 characters", "Slurm gets its first 200 bytes")
def test_a_long_name_of_a_step_reaches_slurm_in_part(bench: Bench) -> None:
    outcome = bench.run(job(f"- {{name: {'日本' * 1500}, run: {{command: ':'}}}}"))
    assert (outcome.status, outcome.calls[0].option("job-name")) == (0, ("日本" * 33).encode())


@pytest.mark.situation("steps", "`cd $SLURM_SUBMIT_DIR` in a pasted script", "the step stays in the job's own folder")
def test_the_submit_folder_of_slurm_is_the_jobs_own(bench: Bench) -> None:
    step = "- run: {command: 'cd $SLURM_SUBMIT_DIR && pwd && [ $PWD = $STORAGE_PATH ]'}"
    outcome = bench.run(job(step), SLURM_SUBMIT_DIR="/")
    assert (outcome.status, outcome.output != "/\n") == (0, True)


def test_the_storage_has_the_folders_of_the_volumes_also_without_containers(bench: Bench) -> None:
    outcome = bench.run(job("- run: {command: 'ls -d tmp world-tmp disk/*'}"))
    assert outcome.output.split() == ["disk/tmp", "disk/world-tmp", "tmp", "world-tmp"]
