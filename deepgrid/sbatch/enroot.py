"""Runs a step in a container with Enroot."""

from __future__ import annotations

from deepgrid.sbatch.quoting import Quoted
from deepgrid.workflow.models import Mount, StepRun

# The text of the function is passed to each task, so nodes need only bash and Enroot.
# bash -p reads neither BASH_ENV nor functions from the environment.
_FUNCTION = Quoted(""""$(declare -f enroot_task start_up posix_export fstab_line)"'; enroot_task "$@"\'""")


def task(run: StepRun) -> list[str]:
    """The words before the command; see `enroot_task` in the template."""
    c = run.container
    assert c is not None
    own = " ".join(variable.key for variable in run.env)
    start = "entry" if run.starts_entry_point else "command"
    folder = (run.work_dir or "") if run.starts_entry_point else ""
    options = [*(["--rw"] if not c.read_only_root_fs else []), *(["--x11"] if c.x11 else [])]
    options += ["--home"] if c.mount_home else []
    mounts = [word for mount in c.mounts for word in ("--mount", *_mount(mount))]
    storage = Quoted('"$__dg_storage" "$__dg_image"')
    volumes = Quoted(
        " ".join(f'"${{__dg_volumes[{number}]}}"' for number in range(10))
    )  # separate words, for any value of IFS
    return ["/bin/bash", "-p", "-c", _FUNCTION, "bash", storage, start, own, folder, volumes, *options, *mounts, "--"]


def _mount(mount: Mount) -> tuple[str, str, str]:
    return mount.host_dir, mount.container_dir, mount.options or "rw"
