"""A customer fills the disk with the grid's folder. The supervisor still cancels, tops up and sees ends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deepgrid.errors import SlurmUnreachable
from deepgrid.slurm.cluster import Cluster
from tests.attacks.blocked_ground import Ground, all_recorded, blocked, cluster, ground, monitor, of, runs
from tests.attacks.on_slurm import ALICE, BOB
from tests.attacks.small_disk import FULL, small_disk
from tests.slurm.support import bash, new_key
from tests.waiting import until

__all__ = ["blocked", "cluster", "ground", "monitor"]
pytestmark = [pytest.mark.long, pytest.mark.skipif(os.getuid() != 0, reason="accounts are made by root")]


@pytest.mark.attack(
    "fills the disk with the grid's folder, then cancels", attacker="a customer", gain="submissions wait",
    defence="cancels and top-ups need no space, and each claim has reserved space for its completion record",
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
