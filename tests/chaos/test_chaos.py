"""Whatever breaks, no job and no minute is lost: faults injected into the real grid, every job judged afterwards."""

from __future__ import annotations

import pytest

from tests.chaos.fault import Fault, all_faults
from tests.chaos.round import run_round
from tests.chaos.table import Table
from tests.chaos.world import World

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.asyncio(loop_scope="package")]

QUICK = [fault for fault in all_faults().values() if fault.quick]
AT_ONCE = 6  # faults a round


@pytest.mark.parametrize("faults", [QUICK[first : first + AT_ONCE] for first in range(0, len(QUICK), AT_ONCE)])
async def test_no_job_and_no_minute_is_lost(world: World, table: Table, seed: int, faults: list[Fault]) -> None:
    await run_round(world, faults, seed, table)
