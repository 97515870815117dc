"""What a carrier knows of its job when the submission returns, on a real chain and Slurm."""

from __future__ import annotations

import pytest

from deepgrid.lifecycle.actions import ReportRunning, Wait
from deepgrid.lifecycle.decide import decide
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.roles import carrier as carrying
from tests.roles.conftest import Scene
from tests.slurm.support import Box, bash

WITHIN_S = 120.0


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is."""
    monkeypatch.setattr(carrying, "PROMPT_S", WITHIN_S)


async def test_where_there_is_room_the_start_needs_no_wait_of_its_own(scene: Scene, key: JobKey) -> None:
    async with scene.session.carry(key) as carrier:
        await carrier.submit(bash("sleep 600"))
        assert isinstance(decide(await carrier.observe()), ReportRunning)


async def test_a_job_that_slurm_lets_wait_is_not_waited_for_in_its_submission(
    scene: Scene, box: Box, key: JobKey
) -> None:
    partition = f"PartitionName={box.settings.partition}"
    box.slurm("scontrol", "update", partition, "State=DOWN")
    try:
        async with scene.session.carry(key) as carrier:
            await carrier.submit(bash("sleep 600"))
            assert scene.session.monitor.observe(key).phase is Phase.QUEUED
            assert isinstance(decide(await carrier.observe()), Wait)
    finally:
        box.slurm("scontrol", "update", partition, "State=UP")
