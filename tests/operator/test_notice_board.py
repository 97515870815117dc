"""Customers read the place of waiting jobs in the line, and no notice twice."""

from __future__ import annotations

from dataclasses import replace

from deepgrid.operator.notice_board import WaitingNotices, waiting_text
from deepgrid.scheduling.market import Waiting

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
