"""Customers read the place of waiting jobs in the line, and no notice twice."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import cast

import pytest

from deepgrid.operator.notice_board import NoticeBoard, WaitingNotices, waiting_text
from deepgrid.operator.store import OperatorStore
from deepgrid.scheduling.market import Waiting
from deepgrid.services.client import ServicesClient

PLACED = Waiting(
    7, "1 cluster is full", position=3, ahead_of_others=2, share=0.41, estimated_start=1_800_000_000, cluster="alpha"
)  # fmt: skip


def test_a_place_in_the_line_is_said_in_words() -> None:
    assert waiting_text(PLACED) == (
        "3rd in line, 2 jobs of others first; your share of CPUs is 41 %;"
        " estimated start 2027-01-15 08:00 UTC at alpha; 1 cluster is full"
    )
    alone = replace(PLACED, position=11, ahead_of_others=0, estimated_start=0, cluster="", resource="GPUs")
    assert waiting_text(alone) == "11th in line, 0 jobs of others first; your share of GPUs is 41 %; 1 cluster is full"
    assert (
        waiting_text(Waiting(7, "40 clusters are too expensive (50% more)"))
        == "40 clusters are too expensive (50% more)"
    )


def test_a_new_reason_is_told_at_once_and_a_new_place_later() -> None:
    notices = WaitingNotices()
    assert [job for job, _, _ in notices.changed([PLACED])] == [7]
    assert notices.changed([PLACED]) == []
    assert notices.changed([replace(PLACED, position=2)]) == []
    assert [text for _, _, text in notices.changed([Waiting(7, "no cluster is open")])] == ["no cluster is open"]
    assert notices.changed([]) == []
    assert [job for job, _, _ in notices.changed([PLACED])] == [7]


def test_a_reservation_that_moves_is_told_at_once_and_a_small_move_is_not() -> None:
    notices, at = WaitingNotices(), PLACED.estimated_start
    for has_reservation, later_s, told in ((True, 0, 1), (True, 50, 0), (True, 120, 1), (False, 3600, 0)):
        now = replace(PLACED, has_reservation=has_reservation, estimated_start=at + later_s)
        assert len(notices.changed([now])) == told


async def test_an_outage_of_a_day_does_not_end_the_posting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses grow to a minute. They once doubled without end, until the number was too large for a float."""
    board, pauses = NoticeBoard(cast(ServicesClient, None), cast(OperatorStore, None), lambda: 0), list[float]()

    async def fails() -> bool:
        board._wanted.set()
        return False

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 1_500:
            raise asyncio.CancelledError

    monkeypatch.setattr(board, "post", fails)
    monkeypatch.setattr("deepgrid.operator.notice_board.asyncio.sleep", pause)
    with pytest.raises(asyncio.CancelledError):
        await board.serve()
    assert pauses[:8] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert set(pauses[8:]) == {60}
