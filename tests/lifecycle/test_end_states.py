"""Every final state of Slurm has one meaning, which docs/how-to/provider.md lists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from deepgrid.lifecycle.actions import Settle
from deepgrid.lifecycle.decide import decide
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.lifecycle.states import JobStatus
from deepgrid.slurm.commands.job_states import FINAL, phase_of
from tests.lifecycle.support import R, ended, seen

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "provider.md"
ROW = re.compile(
    r"\| `(?P<state>[A-Z_]+)`(?P<case>[^|]*) \| (?P<status>[^|]+) \| (?P<billed>[^|]+) \| (?P<error>[^|]*)\|"
)
ROWS = list(ROW.finditer(PAGE.read_text()))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["state"] + row["case"])
def test_the_page_has_the_settlement_of_each_state(row: re.Match[str]) -> None:
    reason = "JobLaunchFailure" if "launched" in row["case"] else ""
    ran_s = 60 if "soon" in row["case"] else 61
    observation = seen(R, ended(row["state"], ran_s, 9, reason), has_cancel_request="request" in row["case"])
    minutes = {"what ran": 2, "nothing": 0}[row["billed"]]
    status = next(status for status in JobStatus if status.words == row["status"])
    faulty = row["billed"] == "nothing"  # the cluster's own, which Slurm may repair by a second start
    assert decide(observation) == Settle(status, minutes, 9, row["error"].strip(), tombstone=faulty)


def test_the_page_lists_every_final_state() -> None:
    assert {row["state"] for row in ROWS} == FINAL
    assert all(phase_of(state) is Phase.ENDED for state in FINAL)


@pytest.mark.parametrize("state", sorted(FINAL))
def test_no_end_is_billed_beyond_the_limit(state: str) -> None:
    action = decide(seen(R, ended(state, 10**6), granted_minutes=7))
    assert isinstance(action, Settle)
    assert action.minutes in (0, 7)
