"""Runs a step in a container of Enroot that Slurm starts, with the Pyxis plugin."""

from __future__ import annotations

from deepgrid.sbatch.containers import Image
from deepgrid.sbatch.quoting import Quoted, quote
from deepgrid.workflow.models import StepRun

X11 = "/tmp/.X11-unix:/tmp/.X11-unix:ro"


def options(run: StepRun, image: Image) -> list[str]:
    """Options of srun. A variable of the step's shell holds the path of an image file."""
    c = run.container
    assert c is not None
    is_file = image.fetched or c.image.startswith("/")
    mounts = [f"{m.host_dir}:{m.container_dir}:{m.options or 'rw'}" for m in c.mounts]
    mounts += [X11] if c.x11 else []
    shown = Quoted('--container-mounts="$__dg_binds"' + quote("".join(f",{mount}" for mount in mounts)))
    found = [
        Quoted('--container-image="$__dg_image"') if is_file else f"--container-image={image.reference}",
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
