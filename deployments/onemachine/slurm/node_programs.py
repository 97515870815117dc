"""What nodes of the one-machine grid offer besides Slurm: Apptainer, an image, s5cmd, limits on memory."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
SHARED = REPOSITORY / ".grid" / "nodes"
CGROUPS = Path("/sys/fs/cgroup/memory")  # of cgroup v1; with v2, Slurm needs systemd
IMAGES = ("debian:latest", "ubuntu:latest")  # names of the one image, so that default jobs need no registry


@dataclass(frozen=True)
class NodePrograms:
    """The programs in `folder`, which jobs can reach."""

    folder: Path

    @property
    def apptainer(self) -> str:
        """Path of Apptainer, or its name if the nodes have none of ours."""
        ours = self.folder / "apptainer" / "bin" / "apptainer"
        return str(ours) if ours.exists() else "apptainer"

    @property
    def local_images(self) -> dict[str, str]:
        """Paths of the images that need no download, by name."""
        image = self.folder / "image"
        return dict.fromkeys(IMAGES, str(image)) if image.exists() else {}

    @property
    def note(self) -> str:
        """A note for the user when no job can run in a container."""
        if self.apptainer != "apptainer" or shutil.which("apptainer"):
            return ""
        return "Apptainer is missing: jobs with containers wait for another cluster. ./run up fetches it from Debian."


def install_programs(state: Path) -> NodePrograms:
    """Install what is missing: into the checkout if jobs can reach it, otherwise into the state folder."""
    folder = state / "nodes" if closed_folders(REPOSITORY) or not os.access(REPOSITORY, os.W_OK) else SHARED
    with open(state / "node-programs.log", "ab") as log:
        subprocess.run([REPOSITORY / "tools" / "node-programs", folder], stdout=log, stderr=log, check=False)
    return NodePrograms(folder)


def closed_folders(path: Path) -> list[Path]:
    """Return the parent folders of `path` that other accounts may not enter, from the inside out."""
    return [place for place in (path, *path.parents) if not place.stat().st_mode & stat.S_IXOTH]


def memory_limits() -> str:
    """Return how Slurm limits the memory of jobs on this machine: by `cgroup`, or `sampled` where it has no cgroups."""
    probe = CGROUPS / f"deepgrid-{os.getpid()}"
    try:
        probe.mkdir()
        limited = (probe / "memory.limit_in_bytes").exists()
        probe.rmdir()
    except OSError:
        return "sampled"
    return "cgroup" if limited else "sampled"


def constraints() -> str:
    """Return the lines of cgroup.conf for limits on memory, and on swap where the kernel counts it."""
    swap = "ConstrainSwapSpace=yes\n" if (CGROUPS / "memory.memsw.limit_in_bytes").exists() else ""
    return f"ConstrainRAMSpace=yes\n{swap}"


def remove_cgroups(node: str) -> None:
    """Remove the cgroups that jobs of a stopped node left. Those in use stay."""
    for folder, _, _ in os.walk(CGROUPS / f"slurm_{node}", topdown=False):
        with suppress(OSError):
            os.rmdir(folder)
