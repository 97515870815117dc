"""A provider claims no more jobs than Slurm lets its accounts submit."""

from __future__ import annotations

import pytest

from deepgrid.lifecycle.job import JobKey
from deepgrid.provider.shared import claim_room
from deepgrid.provider.shared.claim_room import ClaimRoom

KEY = JobKey(1, "0x" + "ab" * 20, 7, 1)
OWN, SHARED = "policy (AssocMaxSubmitJobLimit)", "policy (AssocGrpSubmitJobsLimit)"


def test_one_claim_above_the_limit_tries_it_again() -> None:
    room = ClaimRoom(lambda: 3, accounts_are_apart=False)
    assert not room.is_known
    room.full(KEY, OWN)
    assert room.is_known
    assert [room.beside(claims) for claims in (0, 3, 4, 50)] == [4, 1, 0, 0]


def test_a_limit_that_was_raised_is_noticed() -> None:
    held = [2]
    room = ClaimRoom(lambda: held[0], accounts_are_apart=False)
    room.full(KEY, OWN)
    held[0] = 5
    room.accepted()
    assert room.beside(5) == 1


def test_a_limit_is_forgotten_after_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    room = ClaimRoom(lambda: 2, accounts_are_apart=False)
    room.full(KEY, OWN)
    monkeypatch.setattr(claim_room, "FORGET_S", -1.0)
    assert not room.is_known


@pytest.mark.parametrize(("limit", "known"), [(OWN, False), (SHARED, True), ("MaxJobCount limit reached", True)])
def test_the_limit_of_one_customer_stops_no_other(limit: str, known: bool) -> None:
    room = ClaimRoom(lambda: 2, accounts_are_apart=True)
    room.full(KEY, limit)
    assert room.is_known is known
