"""A small disk for the grid's folder, which a job can fill."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# The commands of a job that fills it, by the options of the file system.
FULL = {
    "size=2m": "while :; do cat /dev/zero >> fill; sleep 0.1; done 2> /dev/null",
    "nr_inodes=150": "i=0; while :; do : > file$((i += 1)) || sleep 0.1; done 2> /dev/null",
}


@contextmanager
def small_disk(folder: Path, options: str) -> Iterator[None]:
    """Mount a small file system in place of the grid's folder, with its owners and modes."""
    parts = {name: (folder / name).stat() for name in ("", "jobs", "spool") if (folder / name).exists()}
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(folder)], check=True)
    try:
        for name, found in parts.items():
            (folder / name).mkdir(exist_ok=True)
            os.chown(folder / name, found.st_uid, found.st_gid)
            (folder / name).chmod(found.st_mode & 0o7777)
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
