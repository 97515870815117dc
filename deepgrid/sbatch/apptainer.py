"""Runs a step in a container with Apptainer."""

from __future__ import annotations

from deepgrid.sbatch.containers import Containers
from deepgrid.sbatch.quoting import Quoted
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
_APART_BUT_DEVICES = [
    "--no-mount",
    "home,tmp,cwd,hostfs",
]  # MPI processes communicate by shared memory and network cards


def task(run: StepRun, containers: Containers) -> list[str]:
    """The words before the command. Variables of the step's shell hold the image's path and folder."""
    c = run.container
    assert c is not None
    options = ["--no-eval", *(_APART if run.mpi in (None, "none") else _APART_BUT_DEVICES)]
    options += ["--nv"] if run.resources and run.resources.gpus_per_task else []
    options += ["--writable-tmpfs"] if not c.read_only_root_fs else []
    options += [word for mount in c.mounts for word in ("--mount", _mount(mount))]
    if run.starts_entry_point and run.work_dir is not None:
        options += ["--cwd", run.work_dir]
    else:
        options += ["--cwd", Quoted('"$__dg_folder"')]
    verb = "run" if run.starts_entry_point else "exec"
    on_node = ["/bin/sh", "-c", _ON_NODE, _X11 if c.x11 else ""]
    return [*on_node, containers.apptainer, "--silent", verb, *options, Quoted('"$__dg_image"')]


def _mount(mount: Mount) -> str:
    """A mount in Apptainer's format, as fields of a CSV line."""
    fields = ["type=bind", _csv(f"source={mount.host_dir}"), _csv(f"destination={mount.container_dir}")]
    return ",".join([*fields, "ro"] if mount.options == "ro" else fields)


def _csv(field: str) -> str:
    return '"' + field.replace('"', '""') + '"'
