"""A reorganisation undoes a claim and mines it again: the first claim starts no job."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from deepgrid.chain.client import Chain
from deepgrid.errors import ChainError, NotFound
from deepgrid.lifecycle.actions import Done, Settle
from deepgrid.lifecycle.decide import decide
from deepgrid.lifecycle.states import JobStatus
from deepgrid.provider.claims.carrier import carry
from deepgrid.provider.zombies import look_for_zombies
from tests.chain.grid import Grid
from tests.chaos.lagging import LaggingNode
from tests.provider.claims import in_queue, running
from tests.provider.scene import FOREIGN_JOB, Scene
from tests.slurm.support import WAIT_S, Box


async def test_no_job_is_started_before_its_claim_is_stable(
    approved: Scene,
    grid: Grid,
    box: Box,
) -> None:
    """The same transaction claims again in a later block. For Slurm this is another claim, with a second job."""
    key = await approved.claimed()
    approved.session.settings = replace(approved.session.settings, claim_stays_s=5)
    async with carry(approved.session, key) as carrier:
        fetching = asyncio.create_task(carrier.fetch_script())
        grid.anvil.call("anvil_rollback", 1)
        grid.anvil.pass_time(60)
        assert await fetching is None
        assert isinstance(decide(await carrier.observe()), Done)
    assert not box.folder(key).exists()


async def test_a_claim_becomes_stable_by_blocks_and_not_by_time(
    approved: Scene, grid: Grid, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = approved.session
    key = await approved.claimed(FOREIGN_JOB)
    session.settings = replace(session.settings, claim_stays_s=0.5)
    looks = []
    now = session.chain.now

    async def looked() -> int:
        looks.append(time.monotonic())
        return await now()

    monkeypatch.setattr(session.chain, "now", looked)
    async with carry(session, key) as carrier:
        fetching = asyncio.create_task(carrier.fetch_script())
        async with asyncio.timeout(WAIT_S):
            while len(looks) < 4:
                await asyncio.sleep(0.05)
        assert not fetching.done()
        grid.anvil.pass_time(1)
        assert await fetching is None
        assert isinstance(decide(await carrier.observe()), Settle)  # because of what it found after the wait


async def test_a_node_that_is_behind_a_claim_ends_no_job(approved: Scene, grid: Grid, box: Box) -> None:
    """One of several nodes behind an address may lag by some blocks. A job that it does not know is not over."""
    session = approved.session
    key = await running(approved, box)
    behind = LaggingNode(grid.anvil.url, 3)
    try:
        usual, late = (
            session.chain,
            session.chain.book.model_copy(update={"rpc_url": f"http://127.0.0.1:{behind.port}"}),
        )
        async with await Chain.connect(late) as session.chain, carry(session, key) as carrier:
            with pytest.raises(ChainError, match="behind the claim"):
                await session.job_of(key)
            assert (await look_for_zombies(session)).left_over == ()
            grid.anvil.mine(3)
            assert (await carrier.observe()).job.status is JobStatus.RUNNING
    finally:
        session.chain = usual
        behind.close()
    assert in_queue(box, key) == "RUNNING"


async def test_a_job_that_never_existed_is_refused_at_once(approved: Scene) -> None:
    """A person started a run for it. A job that a reorganisation undid may come back, but not after this time."""
    async with carry(approved.session, approved.session.key(999, claimed_at=1)) as carrier:
        with pytest.raises(NotFound, match="Job 999 does not exist"):
            await carrier.observe()
