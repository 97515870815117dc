"""Sites in disguise: random combinations of the situations of real sites, each with twenty jobs of all kinds."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.disguise.disguises import CHOSEN, DIMENSIONS, SEEDS, Disguise, disguise, uncovered
from tests.disguise.trials import trials_for

REPOSITORY = Path(__file__).parents[2]
WITHIN_S = 840.0


def wrong_on(seed: int) -> str:
    """Run a site in disguise, on its version of Slurm. Returns what is wrong, with the command that repeats it."""
    how = disguise(seed)
    command: Sequence[str] = [sys.executable, "-m", "tests.disguise", str(seed)]
    if how.version:
        command = [str(REPOSITORY / "tools" / "with-slurm"), how.version, *command]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=WITHIN_S)
    return f"{' '.join(command)}\n{done.stdout}{done.stderr[-4000:]}" if done.returncode else ""


def test_a_seed_has_one_disguise() -> None:
    assert disguise(7) == disguise(7)
    assert len({disguise(seed) for seed in SEEDS}) == len(SEEDS)


def test_the_seeds_cover_all_values_and_the_chosen_ones_all_that_are_not_ordinary() -> None:
    assert uncovered(SEEDS) == {}
    ordinary = {name: values[0] for name, values in DIMENSIONS.items()}
    assert [name for name, values in uncovered(CHOSEN).items() if values != {ordinary[name]}] == []


def test_a_site_has_twenty_jobs() -> None:
    assert {len({trial.name for trial in trials_for(disguise(seed))}) for seed in SEEDS} == {20}


def test_a_disguise_is_one_sentence_with_all_its_values() -> None:
    said = str(Disguise(version="sid", login_shell="/bin/tcsh", max_sessions=2, nodes="one down", clock_s=-2400))
    assert said.count(".") == 1
    assert [word for word in ("sid", "/bin/tcsh", "is 2", "one down", "-2400 s") if word not in said] == []


@pytest.mark.deep
@pytest.mark.situation(
    "combinations", "four sites in disguise, each with other versions, shells, profiles, nodes, clocks and records",
    "of twenty jobs of all kinds none is lost, each bill is right, and doctor names what is wrong and nothing else",
)  # fmt: skip
def test_four_sites_in_disguise() -> None:
    with ThreadPoolExecutor(len(CHOSEN)) as pool:
        wrong = [said for said in pool.map(wrong_on, CHOSEN) if said]
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.deep
@pytest.mark.parametrize("seed", [seed for seed in SEEDS if seed not in CHOSEN])
@pytest.mark.situation(
    "combinations", "26 further random combinations, by seed", "the same",
)  # fmt: skip
def test_a_site_in_disguise(seed: int) -> None:
    wrong = wrong_on(seed)
    assert not wrong, wrong
