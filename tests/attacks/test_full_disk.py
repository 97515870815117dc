"""A customer fills the disk with the grid's folder. The supervisor still cancels, tops up and learns of ends."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deepgrid.errors import SlurmUnreachable
from deepgrid.slurm.cluster import Cluster
from tests.attacks.blocked_ground import Ground, all_recorded, blocked, cluster, ground, monitor, of, runs
from tests.attacks.on_slurm import ALICE, BOB
from tests.slurm.support import bash, new_key
from tests.waiting import until

__all__ = ["blocked", "cluster", "ground", "monitor"]
pytestmark = [pytest.mark.long, pytest.mark.skipif(os.getuid() != 0, reason="accounts are made by root")]


FULL = {
    "size=2m": "while :; do cat /dev/zero >> fill; sleep 0.1; done 2> /dev/null",
    "nr_inodes=150": "i=0; while :; do : > file$((i += 1)) || sleep 0.1; done 2> /dev/null",
}


@pytest.mark.attack(
    "fills the disk with the grid's folder, then cancels", attacker="a customer", gain="submissions wait",
    defence="a cancel and a top-up need no room, and each claim has room for its completion record in reserve",
)  # fmt: skip
@pytest.mark.parametrize("options", FULL)
async def test_a_full_disk_stops_no_cancel_and_loses_no_record(ground: Ground, cluster: Cluster, options: str) -> None:
    root = Path(ground.settings.grid_root)
    with small_disk(root, options):
        his = await runs(cluster, BOB)
        hers = await runs(cluster, ALICE, f"echo works; {FULL[options]}")
        await until(lambda: 0 in (os.statvfs(root).f_bavail, os.statvfs(root).f_ffree))
        with pytest.raises(SlurmUnreachable, match="could not"):
            await cluster.submit(new_key(), bash("true"), of(BOB))
        if ground.settings.user == "root":  # others need Slurm's operator level
            assert await cluster.set_time_limit(his, 17)
            assert (await cluster.queue(his)).claims[his].limit_minutes == 17
        for key in (hers, his):
            await cluster.cancel(key)
        await all_recorded(cluster, hers, his)
        assert {row.comment for row in (await cluster.snapshot([hers, his])).completions} == {hers.comment, his.comment}


@contextmanager
def small_disk(folder: Path, options: str) -> Iterator[None]:
    """A small file system in place of the grid's folder, with its owners and modes."""
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
