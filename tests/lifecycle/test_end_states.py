"""Every final state of Slurm has one meaning, which docs/reference/slurm-words.md lists."""

from __future__ import annotations

import pytest

from deepgrid.lifecycle import ends
from deepgrid.lifecycle.actions import Settle
from deepgrid.lifecycle.decide import decide
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.slurm.commands.job_states import FINAL, phase_of
from tests.lifecycle.slurm_words_page import OTHERS, PAGE, page
from tests.lifecycle.support import R, ended, seen


def test_the_page_is_generated_from_the_tables() -> None:
    assert PAGE.read_text() == page(), "run .venv/bin/python -m tests.lifecycle.slurm_words_page"


def test_the_page_has_all_ends() -> None:
    assert [getattr(ends, name) for name in OTHERS] == list(ends.OTHERS)


def test_the_table_has_every_final_state() -> None:
    assert {*ends.ENDS, "CANCELLED"} == FINAL
    assert all(phase_of(state) is Phase.ENDED for state in FINAL)


@pytest.mark.parametrize("state", sorted(ends.ENDS))
def test_each_state_is_settled_as_the_table_says(state: str) -> None:
    end = ends.ENDS[state]
    minutes = 10 if end.billed else 0
    # Slurm may repair a fault of the cluster by a second start, which the tombstone bars.
    expected = Settle(end.status, minutes, 9, end.error, tombstone=not end.billed)
    assert decide(seen(R, ended(state, 600, 9))) == expected


@pytest.mark.parametrize("state", sorted(FINAL))
def test_no_end_is_billed_beyond_the_limit(state: str) -> None:
    action = decide(seen(R, ended(state, 10**6), granted_minutes=7))
    assert isinstance(action, Settle)
    assert action.minutes in (0, 7)
