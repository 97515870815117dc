"""The words that run a step in a container: with Apptainer, Enroot, or Enroot through Pyxis."""

from __future__ import annotations

from deepgrid.sbatch.containers import Containers, Image
from deepgrid.sbatch.quoting import Quoted, quote
from deepgrid.workflow.models import Mount, StepRun

# Runs on the node before Apptainer. It adds mounts that only the node knows: the sockets of X11 and of PMIx.
_ON_NODE = """
for folder in $0 ${PMIX_SERVER_TMPDIR:-}; do
  [ ! -d "${folder%%:*}" ] || APPTAINER_BIND=$APPTAINER_BIND,$folder
done
exec "$@"
""".strip()
_X11 = "/tmp/.X11-unix:/tmp/.X11-unix:ro"

_APART = ["--contain", "--no-home"]  # nothing of the node, except the mounts below
# MPI processes communicate by shared memory and network cards.
_APART_BUT_DEVICES = ["--no-mount", "home,tmp,cwd,hostfs"]

# The text of the function is passed to each task, so nodes need only bash and Enroot.
# bash -p reads neither BASH_ENV nor functions from the environment.
_ENROOT = Quoted(""""$(declare -f enroot_task start_up posix_export fstab_line)"'; enroot_task "$@"\'""")


def apptainer_task(run: StepRun, containers: Containers) -> list[str]:
    """Return the words before the command, for Apptainer.

    Variables of the step's shell hold the image's path and folder.
    """
    c = run.container
    assert c is not None
    options = ["--no-eval", *(_APART if run.mpi in (None, "none") else _APART_BUT_DEVICES)]
    options += ["--nv"] if run.resources and run.resources.gpus_per_task else []
    options += ["--writable-tmpfs"] if not c.read_only_root_fs else []
    options += [word for mount in c.mounts for word in ("--mount", _apptainer_mount(mount))]
    if run.starts_entry_point and run.work_dir is not None:
        options += ["--cwd", run.work_dir]
    else:
        options += ["--cwd", Quoted('"$__dg_folder"')]
    verb = "run" if run.starts_entry_point else "exec"
    on_node = ["/bin/sh", "-c", _ON_NODE, _X11 if c.x11 else ""]
    return [*on_node, containers.apptainer, "--silent", verb, *options, Quoted('"$__dg_image"')]


def _apptainer_mount(mount: Mount) -> str:
    """Return a mount in Apptainer's format, as fields of a CSV line."""
    fields = ["type=bind", _csv(f"source={mount.host_dir}"), _csv(f"destination={mount.container_dir}")]
    return ",".join([*fields, "ro"] if mount.options == "ro" else fields)


def _csv(field: str) -> str:
    return '"' + field.replace('"', '""') + '"'


def enroot_task(run: StepRun) -> list[str]:
    """Return the words before the command, for Enroot; see `enroot_task` in the template."""
    c = run.container
    assert c is not None
    own = " ".join(variable.key for variable in run.env)
    start = "entry" if run.starts_entry_point else "command"
    folder = (run.work_dir or "") if run.starts_entry_point else ""
    options = [*(["--rw"] if not c.read_only_root_fs else []), *(["--x11"] if c.x11 else [])]
    options += ["--home"] if c.mount_home else []
    mounts = [word for m in c.mounts for word in ("--mount", m.host_dir, m.container_dir, m.options or "rw")]
    storage = Quoted('"$__dg_storage" "$__dg_image"')
    # Separate words, for any value of IFS.
    volumes = Quoted(" ".join(f'"${{__dg_volumes[{number}]}}"' for number in range(10)))
    return ["/bin/bash", "-p", "-c", _ENROOT, "bash", storage, start, own, folder, volumes, *options, *mounts, "--"]


def pyxis_options(run: StepRun, image: Image) -> list[str]:
    """Return the options of srun, which starts the container by Pyxis.

    A variable of the step's shell has an image file's path.
    """
    c = run.container
    assert c is not None
    mounts = [f"{m.host_dir}:{m.container_dir}:{m.options or 'rw'}" for m in c.mounts]
    mounts += [_X11] if c.x11 else []
    shown = Quoted('--container-mounts="$__dg_binds"' + quote("".join(f",{mount}" for mount in mounts)))
    found = [
        Quoted('--container-image="$__dg_image"') if image.is_file else f"--container-image={image.reference}",
        shown,
        "--no-container-remap-root",
        "--container-readonly" if c.read_only_root_fs else "--container-writable",
        "--container-mount-home" if c.mount_home else "--no-container-mount-home",
        "--container-entrypoint" if run.starts_entry_point else "--no-container-entrypoint",
        Quoted('--container-env="$__dg_shown"' + quote("".join(f",{variable.key}" for variable in run.env))),
    ]
    if run.starts_entry_point and run.work_dir is not None:
        found.append(f"--container-workdir={run.work_dir}")
    return found
