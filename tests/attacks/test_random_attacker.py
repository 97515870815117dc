"""Random sequences of everything that a job's account can call or disturb. Run time is billed, and other jobs do not
change. They run on a guarded cluster (hooks, guard, accounting, no process outlives a job) and on an open one with only
the completion hook. The open one's provider trusts its customers, and bills what Slurm or the supervisor saw.
"""

from __future__ import annotations

import asyncio
import os

import pytest

from tests.attacks.attacker import missing
from tests.attacks.random_run import Outcome, play, table
from tests.slurm.support import open_folder

FEW, AT_ONCE = 4, 25  # sequences at once, on each of the two clusters
SLICES = 6
FIRST_DEEP = 1000

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=missing()),
    pytest.mark.timeout(600),
    pytest.mark.attack(
        "random sequences of all calls of the account, with signals, descriptors, locks, full disks and taken names",
        attacker="a job's account",
        gain="less than one minute", defence="evidence comes only from Slurm and the supervisor, and covers all runs",
    ),
]  # fmt: skip


def _slices() -> list[int]:
    """Return all seeds, or the part that DEEP_SLICE names, such as 3/6."""
    wanted = os.environ.get("DEEP_SLICE", "")
    if not wanted:
        return list(range(1, SLICES + 1))
    number, _, of = wanted.partition("/")
    assert of == str(SLICES) and 1 <= int(number) <= SLICES, f"DEEP_SLICE is 1/{SLICES} to {SLICES}/{SLICES}"
    return [int(number)]


@pytest.mark.deep
def test_eight_sequences_break_no_promise() -> None:
    _judge(_played(1, FEW))


@pytest.mark.deep
@pytest.mark.parametrize("number", _slices())
def test_three_hundred_sequences_break_no_promise(number: int) -> None:
    _judge(_played(FIRST_DEEP + 2 * AT_ONCE * (number - 1), AT_ONCE))


def _played(first: int, count: int) -> list[Outcome]:
    middle = first + count
    with open_folder() as folder:
        return asyncio.run(play(folder, {"guarded": range(first, middle), "open": range(middle, middle + count)}))


def _judge(outcomes: list[Outcome]) -> None:
    print(table(outcomes))
    assert not [outcome for outcome in outcomes if outcome.wrong], table([one for one in outcomes if one.wrong])
