"""A folder in which the tests run a script, with `srun` replaced by a recorder.

The recorder saves its environment and arguments byte for byte, then runs the command: itself, or by the real `srun` in
a job of a real cluster.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from deepgrid.sbatch import GUARD_MARK, Containers, StoragePaths, render, render_parts
from deepgrid.sbatch.file_addresses import GridFiles
from deepgrid.sbatch.render import USUAL
from deepgrid.services.admission.checks import ACROSS_PARTS, linted_parts
from deepgrid.services.script_check import check_grammar, lint_script
from deepgrid.workflow import Definition, parse, without_texts
from deepgrid.workflow.models import JobResources
from tests.slurm.support import Box

SRUN = """#!/bin/sh
n=$(date +%s%N)-$$ # steps may run at the same time
# Without an error if this process is killed meanwhile.
cat /proc/$$/environ >{records}/$n.tmp 2>/dev/null
cat /proc/$$/cmdline >{records}/$n.argv 2>/dev/null
mv {records}/$n.tmp {records}/$n.env
"""
# Slurm starts tasks with the usual answer to signals, whatever the shell around srun ignores.
EXECUTE = """
while case $1 in --*) ;; *) false ;; esac; do shift; done
exec /usr/bin/env --default-signal=HUP,INT,QUIT "$@"
"""
EXECUTE_ON_SLURM = 'exec {srun} "$@"\n'


# Steps are recorded calls of srun, which run in process groups of their own. Real ones are in test_launches_on_slurm.
STEPS = """#!/bin/sh
for call in {records}/*-*.argv; do
  pid=${{call##*-}}
  echo "StepId=7.${{pid%.argv}} SrunHost:Pid=here:${{pid%.argv}}"
done
"""
SIGNALS = """#!/bin/sh
for word; do
  case $word in
  --signal=*) signal=${word#*=} ;;
  7.*) kill -s "$signal" -- "-${word#7.}" ;;
  esac
done
"""


# Tests started in the background or by nohup ignore some signals, and so would their children. Slurm's jobs do not.
UNDEAF = [shutil.which("env") or "env", "--default-signal=HUP,INT,QUIT"]


@dataclass
class Call:
    """One call of srun: its environment, its arguments."""

    env: dict[bytes, bytes]
    argv: list[bytes]

    @property
    def command(self) -> bytes | None:
        """The command of the step's shell; None if the step has none."""
        return self.env.get(b"__dg_command")

    @property
    def shell(self) -> bytes:
        """The shell that runs the command. It precedes its own options."""
        return self.argv[-2 if b"__dg_work_dir" in self.env else -4]

    def option(self, name: str) -> bytes | None:
        prefix = f"--{name}=".encode()
        return next((a.removeprefix(prefix) for a in self.argv if a.startswith(prefix)), None)


@dataclass
class Outcome:
    status: int
    output: str
    calls: list[Call]


class Bench:
    """A folder with storage roots and a recording srun. With `execute` it also runs commands.

    With `site`, scripts are jobs of that cluster, and steps are real.
    """

    def __init__(self, root: Path, *, execute: bool = True, site: Box | None = None) -> None:
        self.root, self.records, self.site = root, root / "records", site
        self.storage = StoragePaths.under(str(root / "store"))
        self.containers = Containers()
        self.grid_files = GridFiles()
        for folder in (self.records, *map(Path, self.storage.roots)):
            folder.mkdir(parents=True)
        (root / "bin").mkdir()
        then = EXECUTE_ON_SLURM.format(srun=shutil.which("srun")) if site else EXECUTE if execute else ""
        programs = {"srun": SRUN.format(records=self.records) + then}
        if site is None:
            programs |= {"scontrol": STEPS.format(records=self.records), "scancel": SIGNALS}
        for name, text in programs.items():
            (root / "bin" / name).write_text(text)
            (root / "bin" / name).chmod(0o755)

    def run(self, job: Definition, **env: str) -> Outcome:
        for old in self.records.iterdir():
            old.unlink()
        script = render(job, self.storage, self.containers, grid_files=self.grid_files)
        status, output = self._run_as_job(script, job.resources, env) if self.site else self._run_here(script, env)
        calls = sorted(self.records.glob("*.env"), key=lambda p: int(p.stem.partition("-")[0]))
        return Outcome(status, output.decode(errors="replace"), [self._call(path) for path in calls])

    def _run_here(self, script: str, env: dict[str, str]) -> tuple[int, bytes]:
        done = subprocess.run(
            [*UNDEAF, "bash", "-s"], check=False, input=script.encode(), cwd=self.root, timeout=60,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={"PATH": f"{self.root}/bin:/usr/bin:/bin", "SLURM_JOB_NAME": "0x1", "SLURM_JOB_ID": "7", **env},
        )  # fmt: skip
        return done.returncode, done.stdout

    def _run_as_job(self, script: str, figures: JobResources, env: dict[str, str]) -> tuple[int, bytes]:
        """Run the script as a job on one node. The login shell sets PATH, so the script sets it again."""
        assert self.site
        script = script.replace(GUARD_MARK, f"{GUARD_MARK}\nPATH={self.root}/bin:$PATH", 1)
        options = [
            "--job-name=0x1", "--nodes=1", f"--ntasks={figures.tasks}", f"--cpus-per-task={figures.cpus_per_task}",
            f"--mem-per-cpu={figures.mem_per_cpu}", f"--gpus={figures.gpus}",
        ]  # fmt: skip
        status, output = self.site.run_script(script.encode(), options, self.root, env)
        return status, re.sub(rb"(?m)^(srun|slurmstepd)\S*: .*\n", b"", output)

    def left_behind(self) -> list[Path]:
        return list(Path(self.storage.job).glob("*/*"))

    def _call(self, path: Path) -> Call:
        pairs = [entry.partition(b"=") for entry in path.read_bytes().split(b"\0")[:-1]]
        argv = path.with_suffix(".argv").read_bytes().split(b"\0")[:-1]
        return Call({key: value for key, _, value in pairs}, argv[2:])  # without "/bin/sh srun"


def site_of(request: pytest.FixtureRequest) -> Box | None:
    """Return the cluster of a test that runs on one."""
    box: Box | None = request.getfixturevalue("box") if request.param == "slurm" else None
    return box


def job(
    steps: str, *, env: str = "[]", figures: str = "tasks: 8, cpusPerTask: 1, memPerCpu: 100, gpus: 1"
) -> Definition:
    """Return a job that has one node of a test's cluster to itself."""
    return parse(f"resources: {{{figures}}}\nenv: {env}\nsteps:\n{steps}", "job.yaml").model


PATIENCE_S = 60

# Prefixes of lines that show the progress of a script.
PROGRESS = (
    "Running: ", "Waiting for ", "Importing image ", "Unpacking image", "Downloading input", "Sending output",
    "Starting virtual network ", "tunnel: ",
)  # fmt: skip


def without_progress(output: str) -> list[str]:
    """Return the lines of a job's output, without progress and lines of Slurm and of a step's shell."""
    other = ("srun: ", "slurmstepd", "Terminated")  # the shell prints this about a program that a launch's signal ended
    return [line for line in output.splitlines() if not line.startswith((*PROGRESS, *other))]


def say(word: str, then: str = ":") -> str:
    return f"{{run: {{command: 'echo {word}; {then}'}}}}"


def lines(bench: Bench, steps: str, env: str = "[]") -> tuple[int, list[str]]:
    """Return status and lines of output. shellcheck takes 0.6 s, so only the examples use it: they have every
    construct.
    """
    outcome = bench.run(job(steps, env=env))
    assert bench.left_behind() == []
    return outcome.status, outcome.output.splitlines()


def lint(job: Definition, containers: Containers = USUAL) -> None:
    """Check the job's script as the services do: its parts without their texts, each only once."""
    check_grammar(render(job, StoragePaths(), containers))
    for part in linted_parts(render_parts(without_texts(job), StoragePaths(), containers)):
        _lint_part(part)


@cache
def _lint_part(part: str) -> None:
    lint_script(part, without=ACROSS_PARTS)


def job_with(head: dict[str, object], *commands: str) -> Definition:
    """Return a job with these fields, and a step per command."""
    resources = {"tasks": 1, "cpusPerTask": 1, "memPerCpu": 1, "gpus": 0}
    steps = [{"run": {"command": command}} for command in commands]
    return parse(json.dumps({"resources": resources, **head, "steps": steps}), "job").model


def run(bench: Bench, head: dict[str, object], *commands: str) -> Outcome:
    outcome = bench.run(job_with(head, *commands))
    assert bench.left_behind() == []
    return outcome
