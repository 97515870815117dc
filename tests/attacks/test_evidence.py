"""Jobs that tamper with the evidence of their own runs, on real Slurm with and without hook, guard and accounting."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

import pytest

from deepgrid.lifecycle.decide import LOST
from deepgrid.lifecycle.ends import ALL_ENDS
from tests.attacks.attacker import missing
from tests.attacks.evidence import Outcome, play
from tests.attacks.evidence_cases import CASES
from tests.slurm.support import open_folder

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.timeout(600)]

PROVIDERS_FAULTS = {*(end.error for end in ALL_ENDS if not end.billed), LOST}


@pytest.fixture(scope="module")
def outcomes() -> Iterator[Mapping[tuple[str, str], Outcome]]:
    """The outcomes of all attacks by cluster and case."""
    with open_folder() as folder:
        yield asyncio.run(play(folder))


def _params() -> Iterator[object]:
    for name, case in CASES.items():
        gain = "nothing" if case.least > 1 else "its job does not run, and one minute is billed"
        mark = pytest.mark.attack(case.attack, attacker="a job's account", gain=gain, defence=case.defence)
        for ground in case.grounds:
            yield pytest.param(ground, name, marks=mark, id=f"{name} [{ground}]")


@pytest.mark.long
@pytest.mark.parametrize(("ground", "name"), list(_params()))
def test_the_time_that_ran_is_billed_and_is_no_fault_of_the_provider(
    outcomes: Mapping[tuple[str, str], Outcome], ground: str, name: str
) -> None:
    case, outcome = CASES[name], outcomes[ground, name]
    assert outcome.job.status in case.statuses, outcome
    assert case.least <= outcome.billed <= case.most, outcome
    assert outcome.job.last_error not in PROVIDERS_FAULTS, outcome
    if name in ("renamed", "accounting's comment", "forged rows", "a twin"):
        assert outcome.job.exit_status == 3 << 8, outcome
