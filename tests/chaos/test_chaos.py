"""Faults injected into a real grid lose no job and no minute. Every job is judged afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import pytest

from tests.chaos.conftest import SEED
from tests.chaos.fault import Fault, all_faults, faults_by_module
from tests.chaos.plan import DEEP, Round, few, many
from tests.chaos.round import run_round
from tests.chaos.table import Row
from tests.chaos.world import World
from tests.conftest import SECOND_GRID

pytestmark = [pytest.mark.timeout(1200), pytest.mark.asyncio(loop_scope="package")]

FAULTS = all_faults().values()
FIRST_SEED = int(os.environ.get(SEED, "0"))
Record = Callable[[Row], None]


def named(rounds: Sequence[Round], grids: int = 1) -> dict[str, Round]:
    """Return the rounds by name.

    With two grids every other round runs on the second one, so that both have equal work.
    """
    ordered = sorted(rounds, key=lambda one: len(one[1]), reverse=True)
    return {_name(*one, second=place % grids == 1): one for place, one in enumerate(ordered)}


def _name(seed: int, faults: Sequence[Fault], *, second: bool) -> str:
    words = f"seed {seed}: {faults[0].name} and {len(faults) - 1} more"
    return f"{SECOND_GRID.removeprefix('[')}, {words}" if second else words


FEW = named(few(faults_by_module(), FIRST_SEED))
VERY_MANY = named(many(FAULTS, FIRST_SEED + 100, DEEP, at_once=15), grids=2)


@pytest.mark.long
@pytest.mark.parametrize("one", FEW.values(), ids=FEW)
async def test_a_few_faults_lose_no_job_and_no_minute(world: World, record: Record, one: Round) -> None:
    seed, faults = one
    await run_round(world, faults, seed, record, jobs_per_fault=2, long=True)


@pytest.mark.deep
@pytest.mark.parametrize("one", VERY_MANY.values(), ids=VERY_MANY)
async def test_many_injections_lose_no_job_and_no_minute(world: World, record: Record, one: Round) -> None:
    seed, faults = one
    await run_round(world, faults, seed, record, jobs_per_fault=6, long=True)
