"""Whatever breaks, no job and no minute is lost: faults injected into the real grid, every job judged afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import pytest
from _pytest.mark import ParameterSet

from tests.chaos.conftest import SEED
from tests.chaos.fault import all_faults
from tests.chaos.plan import DEEP, LONG, Round, many, quick
from tests.chaos.round import run_round
from tests.chaos.table import Row
from tests.chaos.world import World
from tests.conftest import SECOND_GRID

pytestmark = [pytest.mark.timeout(1200), pytest.mark.asyncio(loop_scope="package")]

FAULTS = all_faults().values()
FIRST_SEED = int(os.environ.get(SEED, "0"))
Record = Callable[[Row], None]


def named(rounds: Sequence[Round], grids: int = 1) -> list[ParameterSet]:
    """The rounds with names; every other one belongs to the second grid, if there are two, of about the same length."""
    ordered = sorted(rounds, key=lambda one: len(one[1]), reverse=True)
    return [pytest.param(one, id=_name(one, second=place % grids == 1)) for place, one in enumerate(ordered)]


def _name(one: Round, *, second: bool) -> str:
    seed, faults = one
    words = f"seed {seed}: {faults[0].name} and {len(faults) - 1} more"
    return f"{SECOND_GRID.removeprefix('[')}, {words}" if second else words


@pytest.mark.parametrize("one", named(quick(FAULTS, FIRST_SEED, at_once=15)))
async def test_the_quickest_faults(world: World, record: Record, one: Round) -> None:
    seed, faults = one
    await run_round(world, faults, seed, record, jobs_per_fault=3)


@pytest.mark.long
@pytest.mark.parametrize("one", named(many(FAULTS, FIRST_SEED, LONG, at_once=15), grids=2))
async def test_all_faults(world: World, record: Record, one: Round) -> None:
    seed, faults = one
    await run_round(world, faults, seed, record, long=True)


@pytest.mark.deep
@pytest.mark.parametrize("one", named(many(FAULTS, FIRST_SEED + 100, DEEP, at_once=15), grids=2))
async def test_all_faults_again_and_again(world: World, record: Record, one: Round) -> None:
    seed, faults = one
    await run_round(world, faults, seed, record, jobs_per_fault=6, long=True)
