"""Scripts pass every setting of a container to srun, Apptainer, Enroot and Pyxis, byte for byte.

Debian has no packages of Enroot and Pyxis. Here `enroot` and `apptainer` are stand-ins that record their arguments,
environments and files. The stand-in of Enroot then runs the start-up script in a shell, without a container. Pyxis
only adds options of srun, which are recorded. `test_containers_on_slurm` runs real containers of Apptainer.
Here the job and its steps are real on Slurm, the containers are not.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from deepgrid.errors import ConfigurationError, InputError
from deepgrid.sbatch import Containers
from deepgrid.sbatch.containers import Image, Images, place_of
from deepgrid.workflow import load
from deepgrid.workflow.models import ContainerRun
from tests.sbatch.room import Room, job
from tests.sbatch.support import site_of, without_progress

EXAMPLES = Path(__file__).parents[2] / "examples"
DIGEST = "sha256:" + "0" * 64


@pytest.fixture
def room(request: pytest.FixtureRequest, tmp_path: Path) -> Room:
    return Room(tmp_path, site=site_of(request))


@pytest.mark.parametrize(
    ("container", "pyxis", "expected"),
    [
        ({"image": "a/b:1", "apptainer": True}, False, "docker://a/b:1"),
        ({"image": "a/b:1", "apptainer": True, "registry": "r.io"}, False, "docker://r.io/a/b:1"),
        ({"image": "a/b:1"}, False, "docker://a/b:1"),
        ({"image": f"a/b:1@{DIGEST}"}, False, f"docker://a/b:{DIGEST}"),  # Enroot takes the digest as a tag
        ({"image": f"a/b:1@{DIGEST}"}, True, f"a/b:{DIGEST}"),
        ({"image": f"a/b:1@{DIGEST}", "apptainer": True}, False, f"docker://a/b@{DIGEST}"),
        ({"image": "a/b:1", "registry": "r.io"}, False, "docker://r.io#a/b:1"),
        ({"image": "a:1", "registry": "registry-1.docker.io"}, False, "docker://registry-1.docker.io#library/a:1"),
        ({"image": "a", "registry": "docker.io", "apptainer": True}, False, "docker://docker.io/library/a"),
        ({"image": "a", "registry": "r.io"}, True, "r.io#a"),
        ({"image": "a"}, True, "a"),
        ({"image": "a", "registry": "mirrored.io", "apptainer": True}, False, "docker://localhost:5000/a"),
        ({"image": "a", "registry": "mirrored.io"}, True, "docker://localhost:5000#a"),
    ],
)
def test_image_references_are_parsed(container: dict[str, object], pyxis: bool, expected: str) -> None:
    containers = Containers(pyxis=pyxis, mirrors={"mirrored.io": "http://localhost:5000"})
    steps = f"[{{run: {{command: x, container: {json.dumps(container)}}}}}]"
    (image,) = Images(job(steps).steps, containers)
    assert image.reference == expected


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        ({"image": "/../../.."}, "STORAGE/"),
        ({"image": "/input/../../x y.sif"}, "STORAGE/x y.sif"),
        ({"image": "//input//a.sif", "apptainer": True}, "STORAGE/input/a.sif"),
        ({"image": "a/b:1", "deepsquareHosted": True}, "/opt/software/a/b:1"),
        ({"image": "a/b:1", "registry": "r.io", "deepsquareHosted": True}, "/opt/software/r.io/a/b:1"),
        ({"image": "../../etc", "deepsquareHosted": True}, "/opt/software/etc"),
        ({"image": "../../../etc", "registry": "r", "deepsquareHosted": True}, "/opt/software/etc"),
        ({"image": "ubuntu"}, "/images/it's debian"),
        ({"image": "ubuntu:latest"}, "/images/it's debian"),
        ({"image": "library/ubuntu:latest", "registry": "docker.io"}, "/images/it's debian"),
    ],
)
def test_paths_stay_below_their_folders(container: dict[str, object], expected: str) -> None:
    containers = Containers(local_images={"ubuntu:latest": "/images/it's debian"})
    (place,) = shlex.split(place_of(ContainerRun.model_validate(container), containers))
    assert place.replace("$__dg_storage", "STORAGE") == expected


def test_a_hosted_path_is_refused() -> None:
    with pytest.raises(InputError, match="must be a name, not a path"):
        job("[{run: {command: x, container: {image: /etc, deepsquareHosted: true}}}]")


def test_an_entry_point_needs_closed_quotes() -> None:
    with pytest.raises(InputError, match="quotes in command must be closed"):
        job('[{run: {command: "it\'s", shell: ENTRYPOINT, container: {image: a}}}]')


def test_mounts_give_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    mounts = "[{hostDir: /a, containerDir: /b}]"
    file.write_text(
        "resources: {tasks: 1, cpusPerTask: 1, memPerCpu: 1, gpus: 0}\n"
        f"steps: [{{run: {{command: x, container: {{image: a, mounts: {mounts}}}}}}}]\n"
    )
    (warning,) = load(file).warnings
    assert "mounts: warning: is outdated; use the storage volumes" in warning


@pytest.mark.parametrize(
    "wrong",
    [
        {"hosted": "software"},
        {"apptainer": ""},
        {"mirrors": {"a": "localhost:5000"}},
        {"mirrors": {"a": "http://x/$(id)"}},
        {"local_images": {"ubuntu": "debian.sif"}},
    ],
)
def test_settings_of_a_cluster_are_checked(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        Containers(**wrong)  # type: ignore[arg-type]


APPTAINER_STEP = """
  - run:
      command: it's $HOME
      shell: /bin/bash
      workDir: /a 'b'
      mpi: pmi2
      disableCpuBinding: true
      resources: {tasks: 1, gpusPerTask: 1}
      env: [{key: OWN, value: own}, {key: STORAGE_PATH, value: mine}]
      container:
        {image: a/b, registry: r.io, apptainer: true, x11: true, mountHome: true, readOnlyRootFS: true, username: me,
         password: "p'w", mounts: [{hostDir: '/x "y",', containerDir: /z, options: ro}]}
  - run: {command: 'one "two three"', shell: ENTRYPOINT, container: {image: a/b, registry: r.io, apptainer: true}}
  - run: {command: '', container: {image: /input/i.sif, apptainer: true}}
"""


def test_apptainer_gets_every_setting(room: Room) -> None:
    outcome = room.run_in(Containers(), APPTAINER_STEP)
    assert outcome.status == 0, outcome.output
    (pull, pull_again), (first,) = room.calls("apptainer", "pull"), room.calls("apptainer", "exec")
    assert pull[:-2] == pull_again[:-2] == ["--silent", "pull", "--force", "--disable-cache"]
    assert pull[-1] == "docker://r.io/a/b"
    storage = pull[-2].rsplit("/", 1)[0]
    assert first == [
        "--silent", "exec", "--no-eval", "--no-mount", "home,tmp,cwd,hostfs", "--nv", "--mount",
        'type=bind,"source=/x ""y"",","destination=/z",ro', "--cwd", "/", f"{storage}/.image-1",
        "/bin/sh", "-c", "--", *first[-3:-2], "/bin/bash", first[-1],
    ]  # fmt: skip
    second, third = room.calls("apptainer", "run")
    assert second[-3:] == [f"{storage}/.image-2", "one", "two three"]
    assert third[-1] == f"{storage}/input/i.sif"
    assert {"--contain", "--no-home", "--writable-tmpfs"} <= {*second}
    call = outcome.calls[0]
    assert (call.command, call.env[b"__dg_work_dir"]) == (b"it's $HOME", b"/a 'b'")
    assert [call.option(name) for name in ("mpi", "cpu-bind", "gpu-bind", "gpus")] == [b"pmi2", b"none", b"none", b"1"]
    assert (call.env[b"OWN"], call.env[b"APPTAINERENV_OWN"]) == (b"own", b"own")
    assert (call.env[b"STORAGE_PATH"], call.env[b"DEEPSQUARE_TMP"]) == (b"mine", b"/deepsquare/tmp")
    binds = call.env[b"APPTAINER_BIND"].decode().split(",")
    assert binds[0] == f"{storage}:/deepsquare"
    assert binds[-1] == str(room.root)
    assert [bind.split(":")[1] for bind in binds[:-1]] == [
        "/deepsquare", "/deepsquare/tmp", "/deepsquare/world-tmp", "/deepsquare/disk/tmp", "/deepsquare/disk/world-tmp",
    ]  # fmt: skip


def test_a_module_shows_its_containers_its_own_env_file(room: Room) -> None:
    container = "{run: {command: x, container: {image: a, apptainer: true}}}"
    outcome = room.run_in(
        Containers(), f"[{container}, {{module: {{source: x, exportEnvAs: P, outputs: [A], steps: [{container}]}}}}]"
    )
    shared, own = (call.env[b"DEEPSQUARE_ENV"] for call in outcome.calls)
    assert shared == b"/deepsquare/env"
    assert own.startswith(b"/deepsquare/env.")


def test_credentials_reach_only_the_command_that_fetches(room: Room) -> None:
    room.run_in(Containers(), APPTAINER_STEP)
    holders = [
        path.with_suffix(".argv").read_bytes().split(b"\0")[1]
        for path in room.noted("env")
        if b"p'w" in path.read_bytes()
    ]
    assert holders == [b"pull"]
    assert not any(b"p'w" in path.read_bytes() for path in room.noted("argv"))


ENROOT_STEPS = """
  - run:
      command: printf '%s\\n' "$FROM_IMAGE" "$OWN" "$JOB" "$STORAGE_PATH" "$MANY" "$name$i"
      resources: {tasks: 1}
      env:
        - {key: OWN, value: "it's $(id) `id` \\\\"}
        - {key: name, value: n}
        - {key: i, value: "9"}
        - {key: MANY, value: "two\\nlines"}
      container: {image: a, registry: r.io, username: $oauth, password: "p \\"w\\\\\\n$(id)", x11: true,
        mounts: [{hostDir: '/x y', containerDir: "/new\\nline\\\\", options: ro}]}
  - run: {command: 'one "two three"', shell: ENTRYPOINT, workDir: /tmp, container: {image: a, readOnlyRootFS: true}}
  - run: {command: '', container: {image: /output/i.sqsh, mountHome: true}}
"""


def test_enroot_gets_every_setting(room: Room) -> None:
    outcome = room.run_in(Containers(), ENROOT_STEPS, env="[{key: JOB, value: job}, {key: FROM_IMAGE, value: job}]")
    assert outcome.status == 0, outcome.output
    assert "Importing image a" in outcome.output.splitlines()
    assert without_progress(outcome.output) == [
        "image", "it's $(id) `id` \\", "job", "/deepsquare", "two", "lines", "n9",
        "entry point: one two three", "entry point: ",
    ]  # fmt: skip
    imports, creates = room.calls("enroot", "import"), room.calls("enroot", "create")
    assert [call[-1] for call in imports] == ["docker://r.io#a", "docker://a"]
    names = [call[2] for call in creates]
    assert all(re.fullmatch(r"deepgrid-0x1\.[0-9]+-[0-9]+-0", name) for name in names)
    assert [call[:2] for call in creates] == [["create", "--name"]] * 3
    assert creates[2][3].endswith("/output/i.sqsh")
    assert room.calls("enroot", "remove") == [["remove", "--force", name] for name in names]
    starts = room.calls("enroot", "start")
    assert starts[0][3:5] == ["--rw", names[0]]
    assert starts[1][3:] == [names[1], "one", "two three"]
    assert starts[2][3:] == ["--rw", names[2]]
    mounts = room.noted("mounts")[0].read_text().splitlines()
    assert [line.split(" ", 1)[1] for line in mounts[:5]] == [
        f"/deepsquare{volume} none x-create=dir,bind,rw"
        for volume in ("", "/tmp", "/world-tmp", "/disk/tmp", "/disk/world-tmp")
    ]  # fmt: skip
    assert "/x\\040y /new\\012line\\134 none x-create=auto,bind,ro" in mounts
    homes = [dict(pair.split(b"=", 1) for pair in path.read_bytes().split(b"\0") if pair)[b"ENROOT_MOUNT_HOME"]
             for path in room.noted("env") if path.with_suffix(".mounts").exists()]  # fmt: skip
    assert homes == [b"no", b"no", b"yes"]


def test_enroot_reads_credentials_from_a_private_file_that_is_removed(room: Room) -> None:
    room.run_in(Containers(), ENROOT_STEPS)
    (file,) = room.noted("credentials")
    assert file.read_text() == 'machine r.io login "$oauth" password "p \\"w\\\\\\n$(id)"\n'
    assert file.stat().st_mode & 0o777 == 0o600
    assert room.noted("mode")[0].read_text() == "700\n"
    assert room.left_behind() == []


def test_an_image_that_cannot_be_fetched_fails_its_step(room: Room) -> None:
    (room.root / "broken").touch()
    outcome = room.run_in(Containers(), "\n  - run: {command: x, container: {image: a}}\n")
    assert (outcome.status, outcome.calls) == (1, [])
    assert without_progress(outcome.output) == [
        "no such image",
        "deepgrid: the image of a container could not be fetched",
    ]


def test_pyxis_gets_every_setting(tmp_path: Path) -> None:
    room = Room(tmp_path, execute=False)
    outcome = room.run_in(Containers(pyxis=True), ENROOT_STEPS.replace("/x y", "/x").replace("/new\\nline\\\\", "/y"))
    first, second, third = outcome.calls
    storage = (first.option("container-image") or b"").rsplit(b"/", 1)[0]
    assert first.option("container-image") == storage + b"/.image-1"  # fetched with the registry account before
    assert (second.option("container-image"), third.option("container-image")) == (b"a", storage + b"/output/i.sqsh")
    mounts = (first.option("container-mounts") or b"").split(b",")
    assert mounts[0] == storage + b":/deepsquare"
    assert mounts[-2:] == [b"/x:/y:ro", b"/tmp/.X11-unix:/tmp/.X11-unix:ro"]
    assert (first.option("container-env") or b"").split(b",")[-4:] == [b"OWN", b"name", b"i", b"MANY"]
    flags = [[word for word in call.argv if word.startswith((b"--container-", b"--no-container-")) and b"=" not in word]
             for call in outcome.calls]  # fmt: skip
    common = b"--no-container-remap-root"
    assert flags == [
        [common, b"--container-writable", b"--no-container-mount-home", b"--no-container-entrypoint"],
        [common, b"--container-readonly", b"--no-container-mount-home", b"--container-entrypoint"],
        [common, b"--container-writable", b"--container-mount-home", b"--container-entrypoint"],
    ]
    assert second.option("container-workdir") == b"/tmp"
    assert second.argv[-2:] == [b"one", b"two three"]


@pytest.mark.parametrize("field", ["mapUid: 0", "container: {image: a, mounts: [{hostDir: '/a:b', containerDir: /c}]}"])
def test_a_container_that_pyxis_cannot_express_runs_with_enroot(field: str) -> None:
    container = "" if "container" in field else "container: {image: a},"
    made = job(f"[{{run: {{command: x, {container} {field}}}}}]")
    assert [image.form for image in Images(made.steps, Containers(pyxis=True))] == ["enroot"]


def test_steps_with_the_same_image_fetch_it_once(room: Room) -> None:
    step = "{run: {command: x, container: {image: a, apptainer: true}}}"
    outcome = room.run_in(
        Containers(), f"\n  - for: {{parallel: true, items: [a, b, c], steps: [{step}]}}\n  - {step}\n"
    )
    assert outcome.status == 0
    assert len(room.calls("apptainer", "pull")) == 1
    assert len(room.calls("apptainer", "exec")) == 4


@pytest.mark.recorder("its two real tasks print two lines")
def test_the_example_of_enroot_does_what_it_says(room: Room) -> None:
    made = load(EXAMPLES / "container-enroot.yaml").model
    outcome = room.run(made, SLURM_STEP_ID="3", SLURM_PROCID="0", HOME=str(room.root))
    assert (outcome.status, without_progress(outcome.output)) == (0, ["hello from Enroot"])
    assert [call.option("ntasks") for call in outcome.calls] == [b"2"]
    assert "--rw" not in room.calls("enroot", "start")[0]


def test_an_image_is_no_secret_in_a_repr() -> None:
    container = ContainerRun(image="a", registry="r", username="somebody", password="hidden")
    assert "hidden" not in repr(Image(1, "enroot", container))
