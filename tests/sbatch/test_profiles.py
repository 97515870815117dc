"""A script runs in a login shell, whose profile may do anything."""

from __future__ import annotations

import subprocess

import pytest

from deepgrid.sbatch import render
from deepgrid.slurm.observe.run_records import GUARD_STATUS
from deepgrid.slurm.submit.protocol import with_guard
from tests.sbatch.support import Bench, job, say

PROFILE = """echo "profile says hello"; false
export FROM_PROFILE=yes PATH=/profile/bin SLURM_JOB_ID=99
trap 'echo trapped' DEBUG ERR EXIT
set -fCu; shopt -s failglob nullglob; IFS=,; CDPATH=/; false
"""


def login(bench: Bench, script: bytes, profile: str) -> subprocess.CompletedProcess[str]:
    """Run the script as Slurm would, in the account of a user with this profile."""
    (bench.root / ".bash_profile").write_text(profile)
    (bench.root / "script").write_bytes(script)
    (bench.root / "script").chmod(0o755)
    return subprocess.run(
        [bench.root / "script"], check=False, cwd=bench.root, timeout=60, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={"PATH": f"{bench.root}/bin:/usr/bin:/bin", "HOME": str(bench.root), "SLURM_JOB_NAME": "0x1",
             "SLURM_JOB_ID": "7"},
    )  # fmt: skip


@pytest.mark.recorder("starts the script itself")
@pytest.mark.parametrize("through_guard", [False, True])
def test_a_script_runs_in_a_login_shell_whatever_the_profile_does(bench: Bench, through_guard: bool) -> None:
    """Its variables count. Its failures, options, traps and PATH do not break the job."""
    command = "echo $FROM_PROFILE $SLURM_JOB_ID ${PATH%%:*}; cd /; srun true && echo found"
    script = render(job(f"- run: {{shell: /bin/bash, command: '{command}'}}"), bench.storage)
    (bench.root / f"grid{through_guard}" / "run").mkdir(parents=True)
    (bench.root / f"grid{through_guard}" / "run" / "unstarted").touch()
    folder = str(bench.root / f"grid{through_guard}")
    done = login(bench, with_guard(script, folder) if through_guard else script.encode(), PROFILE)
    said = [line for line in done.stdout.splitlines() if line != "trapped"]
    assert (done.returncode, said[-3:]) == (
        0,
        ["profile says hello", "yes 7 /profile/bin", "found"],
    )
    assert bench.left_behind() == []


@pytest.mark.deep  # a step longer than the shortest TMOUT
@pytest.mark.recorder("starts the script itself")
@pytest.mark.situation(
    "steps",
    "`readonly TMOUT=900` in the profile of a site, and a parallel loop that takes longer",
    "all iterations run to their end",
)
def test_tmout_of_a_profile_ends_no_parallel_loop(bench: Bench) -> None:
    steps = """
    - for: {range: {begin: 1, end: 2}, parallel: true, steps: [{run: {command: 'sleep 1.5; echo $index'}}]}
    - run: {command: 'echo after'}
    """
    done = login(
        bench, render(job(steps), bench.storage).encode(), "PATH=/profile/bin; readonly TMOUT=1; export TMOUT\n"
    )
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, ["1", "2", "after"])


@pytest.mark.recorder("starts the script itself")
@pytest.mark.situation("steps", "`POSIXLY_CORRECT` in the profile of a site", "the job runs as without it")
def test_posixly_correct_of_a_profile_breaks_no_job(bench: Bench) -> None:
    done = login(
        bench, render(job(f"- {say('word')}"), bench.storage).encode(), "PATH=/profile/bin; export POSIXLY_CORRECT=1\n"
    )
    assert (done.returncode, done.stdout) == (0, "word\n")


@pytest.mark.recorder("starts the script itself")
def test_a_refused_start_does_not_run_the_profile_that_a_customer_wrote(bench: Bench) -> None:
    (bench.root / "tombstone").touch()
    script = with_guard(render(job("- run: {command: ':'}"), bench.storage), str(bench.root))
    done = login(bench, script, "echo computing for nothing")
    (bench.root / "tombstone").unlink()
    assert (done.returncode, done.stdout) == (GUARD_STATUS, "deepgrid: cancelled before it started\n")
