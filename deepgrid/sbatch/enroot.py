"""A step in a container of Enroot."""

from __future__ import annotations

from deepgrid.sbatch.quoting import Quoted
from deepgrid.workflow.models import Mount, StepRun

# The function that each task runs comes along as text: nodes need nothing but bash and Enroot.
# Bash with -p neither reads BASH_ENV nor functions from the environment.
_FUNCTION = Quoted(""""$(declare -f enroot_task start_up posix_export fstab_line)"'; enroot_task "$@"\'""")


def task(run: StepRun) -> list[str]:
    """The words in front of the command, see `enroot_task` in the template."""
    c = run.container
    assert c is not None
    own = " ".join(variable.key for variable in run.env)
    start = "entry" if run.starts_entry_point else "command"
    folder = (run.work_dir or "") if run.starts_entry_point else ""
    options = [*(["--rw"] if not c.read_only_root_fs else []), *(["--x11"] if c.x11 else [])]
    options += ["--home"] if c.mount_home else []
    mounts = [word for mount in c.mounts for word in ("--mount", *_mount(mount))]
    storage = Quoted('"$__dg_storage" "$__dg_image"')
    volumes = Quoted(" ".join(f'"${{__dg_volumes[{number}]}}"' for number in range(10)))  # one by one, whatever IFS is
    return ["/bin/bash", "-p", "-c", _FUNCTION, "bash", storage, start, own, folder, volumes, *options, *mounts, "--"]


def _mount(mount: Mount) -> tuple[str, str, str]:
    return mount.host_dir, mount.container_dir, mount.options or "rw"
