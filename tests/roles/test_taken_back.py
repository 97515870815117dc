"""A claim that the chain takes back shortly after it was made, and makes again: nothing of the first one is started."""

from __future__ import annotations

import asyncio

from deepgrid.lifecycle.actions import Done
from deepgrid.lifecycle.decide import decide
from tests.chain.grid import Grid
from tests.roles.conftest import Scene
from tests.roles.test_zombies import approved  # noqa: F401 (a fixture)
from tests.slurm.support import Box


async def test_what_is_started_stays_started_so_a_claim_must_stay_first(
    approved: Scene,  # noqa: F811
    grid: Grid,
    box: Box,
) -> None:
    """The same transaction claims again, in a later block: for Slurm that is another claim, and a second start."""
    key = await approved.claimed()
    async with approved.session.carry(key) as carrier:
        fetching = asyncio.create_task(carrier.fetch_script())
        grid.anvil.call("anvil_rollback", 1)
        grid.anvil.pass_time(60)
        assert await fetching is None
        assert isinstance(decide(await carrier.observe()), Done)
    assert not box.folder(key).exists()
