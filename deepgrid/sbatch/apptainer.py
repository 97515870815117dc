"""A step in a container of Apptainer."""

from __future__ import annotations

from deepgrid.sbatch.containers import Containers
from deepgrid.sbatch.quoting import Quoted
from deepgrid.workflow.models import Mount, StepRun

# On the node, in front of Apptainer: what only a node knows becomes a mount as well. PMIx has its sockets in a folder.
_ON_NODE = """
APPTAINER_BIND=$APPTAINER_BIND${PMIX_SERVER_TMPDIR:+,$PMIX_SERVER_TMPDIR}
if [ "$0" = x11 ] && [ -d /tmp/.X11-unix ]; then APPTAINER_BIND=$APPTAINER_BIND,/tmp/.X11-unix:/tmp/.X11-unix:ro; fi
exec "$@"
""".strip()


def task(run: StepRun, containers: Containers) -> list[str]:
    """The words in front of the command; the image's path is in a variable of the step's shell.

    The container has folders and devices of its own (--contain); variables are taken literally (--no-eval).
    """
    c = run.container
    assert c is not None
    options = ["--no-eval", "--contain"]
    if run.resources and run.resources.gpus_per_task:
        options.append("--nv")
    if not c.read_only_root_fs:
        options.append("--writable-tmpfs")
    if not c.mount_home:
        options.append("--no-home")
    options += [word for mount in c.mounts for word in ("--mount", _mount(mount))]
    if run.starts_entry_point and run.work_dir is not None:
        options += ["--cwd", run.work_dir]
    else:
        options += ["--cwd", Quoted('"$__dg_folder"')]
    verb = "run" if run.starts_entry_point else "exec"
    on_node = ["/bin/sh", "-c", _ON_NODE, "x11" if c.x11 else "sh"]
    return [*on_node, containers.apptainer, "--silent", verb, *options, Quoted('"$__dg_image"')]


def _mount(mount: Mount) -> str:
    """A mount as Apptainer reads it: fields of a CSV line."""
    fields = ["type=bind", _csv(f"source={mount.host_dir}"), _csv(f"destination={mount.container_dir}")]
    return ",".join([*fields, "ro"] if mount.options == "ro" else fields)


def _csv(field: str) -> str:
    return '"' + field.replace('"', '""') + '"'
