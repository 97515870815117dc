"""Whatever breaks, no job and no minute is lost: faults injected into the real grid, every job judged afterwards."""

from __future__ import annotations

import os

import pytest

from tests.chaos.conftest import SEED
from tests.chaos.fault import all_faults
from tests.chaos.plan import DEEP, LONG, Round, many, quick
from tests.chaos.round import run_round
from tests.chaos.table import Table
from tests.chaos.world import World

pytestmark = [pytest.mark.timeout(1200), pytest.mark.asyncio(loop_scope="package")]

FAULTS = all_faults().values()
FIRST_SEED = int(os.environ.get(SEED, "0"))


def name(one: Round) -> str:
    seed, faults = one
    return f"seed {seed}: {faults[0].name} and {len(faults) - 1} more"


@pytest.mark.deep
@pytest.mark.parametrize("one", quick(FAULTS, FIRST_SEED, at_once=10), ids=name)
async def test_the_quickest_faults(world: World, table: Table, one: Round) -> None:
    seed, faults = one
    await run_round(world, faults, seed, table, jobs_per_fault=3)


@pytest.mark.deep
@pytest.mark.parametrize("one", many(FAULTS, FIRST_SEED, LONG, at_once=10), ids=name)
async def test_all_faults(world: World, table: Table, one: Round) -> None:
    seed, faults = one
    await run_round(world, faults, seed, table, long=True)


@pytest.mark.deep
@pytest.mark.parametrize("one", many(FAULTS, FIRST_SEED + 100, DEEP, at_once=10), ids=name)
async def test_all_faults_again_and_again(world: World, table: Table, one: Round) -> None:
    seed, faults = one
    await run_round(world, faults, seed, table, jobs_per_fault=6, long=True)
