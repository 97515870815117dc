"""Any text in the fields of a container arrives unchanged, and none of it is executed.

`apptainer` and `enroot` are stand-ins as in `test_containers`. The stand-in of Enroot runs its start-up script in a
plain shell. This also tests the quoting inside the container.
"""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deepgrid.workflow import Definition, EnvVar, Step, StepRun, canonical, from_canonical
from deepgrid.workflow.models import ContainerRun, Mount
from tests.sbatch.hostile import CANARY, FIGURES, environments, hostile
from tests.sbatch.support import Bench

# Each records its arguments. A name that cannot be a file name is used literally, so no file is created.
STAND_INS = {
    "apptainer": """#!/bin/sh
cat /proc/$$/environ >{root}/$2.env
cat /proc/$$/cmdline >{root}/$2.argv
[ "$2" != pull ] || : >"$5"
""",
    "enroot": """#!/bin/sh
cat /proc/$$/environ >{root}/$1.env
cat /proc/$$/cmdline >{root}/$1.argv
case $1 in
import) cat "$ENROOT_CONFIG_PATH/.credentials" >{root}/credentials; printf hsqs >"$3" ;;
start)
  printf %s "$__dg_mounts" >{root}/mounts
  exec env -i PATH=/usr/bin:/bin /bin/sh -c '. "${{0%/*}}/rc"; PATH=/usr/bin:/bin; exec env -0 >{root}/inside.env' "$3"
  ;;
esac
""",
}


# Variables that the stand-in of srun, a shell, sets itself.
OF_A_SHELL = {"IFS", "PS4", "SHLVL", "PWD", "OLDPWD"}


pytestmark = pytest.mark.recorder("hundreds of generated scripts")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    made = Bench(tmp_path_factory.mktemp("containers"))
    for name, text in STAND_INS.items():
        program = made.root / "bin" / name
        program.write_text(text.format(root=made.root))
        program.chmod(0o755)
    return made


@st.composite
def containers(draw: st.DrawFn) -> ContainerRun:
    texts = hostile().filter(bool)
    paths = texts.map(lambda text: "/" + text)
    mounts = draw(
        st.lists(st.tuples(paths, paths).map(lambda two: Mount(host_dir=two[0], container_dir=two[1])), max_size=2)
    )
    return ContainerRun(
        image="a/b:1", mounts=tuple(mounts), apptainer=draw(st.booleans()),
        registry="registry.example.org", username=draw(texts), password=draw(texts),
    )  # fmt: skip


@st.composite
def jobs(draw: st.DrawFn) -> Definition:
    texts = hostile()
    container, folder = draw(containers()), draw(st.none() | texts.map(lambda text: f"/proc/{text}"))
    env, command = draw(environments(texts)), draw(texts.filter(bool))
    run = StepRun(command="", container=container, env=env)  # the entry point, so that the stand-in continues
    if container.apptainer:
        run = StepRun(command=command, work_dir=folder, container=container, env=env)
    return Definition(resources=FIGURES, env=draw(environments(texts)), steps=(Step(name=draw(texts), run=run),))


def check(bench: Bench, job: Definition) -> None:
    for old in bench.root.glob("*.*"):
        old.unlink()
    (run,) = (step.run for step in job.steps)
    assert run
    assert run.container
    outcome = bench.run(from_canonical(canonical(job)), SLURM_STEP_ID="3", SLURM_PROCID="0")
    assert outcome.status == 0, outcome.output
    assert not (bench.root / CANARY).exists()
    assert bench.left_behind() == []
    if run.container.apptainer:
        check_apptainer(bench.root, run, run.container)
    else:
        check_enroot(bench.root, job.env, run, run.container)


def check_apptainer(root: Path, run: StepRun, container: ContainerRun) -> None:
    env, argv = noted(root / "exec.env"), (root / "exec.argv").read_bytes().split(b"\0")[:-1]
    assert env["__dg_command"] == run.command.encode()
    assert env.get("__dg_work_dir") == (None if run.work_dir is None else run.work_dir.encode())
    for variable in run.env:
        assert env[f"APPTAINERENV_{variable.key}"] == variable.value.encode()
        assert variable.key in OF_A_SHELL or env[variable.key] == variable.value.encode()
    told = [argv[index + 1].decode() for index, word in enumerate(argv) if word == b"--mount"]
    fields = [next(csv.reader([text], strict=True)) if "\n" not in text and "\r" not in text else None for text in told]
    for mount, found in zip(container.mounts, fields, strict=True):
        assert found in (None, ["type=bind", f"source={mount.host_dir}", f"destination={mount.container_dir}"])
    account = noted(root / "pull.env")
    assert account["APPTAINER_DOCKER_USERNAME"] == (container.username or "").encode()
    assert account["APPTAINER_DOCKER_PASSWORD"] == (container.password or "").encode()


def check_enroot(root: Path, job_env: tuple[EnvVar, ...], run: StepRun, container: ContainerRun) -> None:
    assert not {"BASH_ENV", "ENV"} & noted(root / "start.env").keys()
    inside = noted(root / "inside.env")
    for variable in run.env:
        assert variable.key in OF_A_SHELL or inside[variable.key] == variable.value.encode()
    above = {variable.key for variable in run.env} | {"STORAGE_PATH", "DEEPSQUARE_ENV"} | OF_A_SHELL
    for variable in job_env:
        assert variable.key in above or inside[variable.key] == variable.value.encode()
    line = (root / "credentials").read_bytes().decode().removesuffix("\n")
    match = re.fullmatch(r'machine registry\.example\.org login "((?:[^"\\]|\\.)*)" password "((?:[^"\\]|\\.)*)"', line)
    assert match, line
    assert [netrc(part) for part in match.groups()] == [container.username, container.password]
    mounts = (root / "mounts").read_bytes().decode().removesuffix("\n").split("\n")[5:-1]
    told = [tuple(octal(part) for part in mount.split(" ")[:2]) for mount in mounts]
    assert told == [(mount.host_dir, mount.container_dir) for mount in container.mounts]


def noted(path: Path) -> dict[str, bytes]:
    pairs = [entry.partition(b"=") for entry in path.read_bytes().split(b"\0")[:-1]]
    return {os.fsdecode(key): value for key, _, value in pairs}


def netrc(text: str) -> str:
    """Decode a quoted word of netrc like curl."""
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "r": "\r", "t": "\t"}.get(m[1], m[1]), text)


def octal(text: str) -> str:
    """Decode a field of fstab like glibc."""
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), text)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(jobs())
def test_hostile_containers_change_nothing_but_themselves(bench: Bench, job: Definition) -> None:
    check(bench, job)


@pytest.mark.deep
@pytest.mark.timeout(0)
@settings(max_examples=2_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(jobs())
def test_two_thousand_hostile_containers(bench: Bench, job: Definition) -> None:
    check(bench, job)
