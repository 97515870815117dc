"""Parties take turns: the order, the size of a turn, and the items that are dropped."""

from __future__ import annotations

from deepgrid.services.admission.fair_queue import Turns


def test_a_turn_ends_when_its_worth_is_used() -> None:
    turns: Turns[tuple[str, int]] = Turns(3, lambda item: item[1])
    for party, prices in {"a": (1, 1, 1, 1, 5), "b": (2, 2, 2)}.items():
        for price in prices:
            turns.add(party, (party, price))
    taken = [turns.take() for _ in range(len(turns))]
    assert "".join(item[0] for item in taken if item) == "aaabbaab"
    assert turns.take() is None


def test_an_item_that_may_not_be_taken_keeps_its_place() -> None:
    turns: Turns[int] = Turns()
    for party, number in (("a", 9), ("a", 1), ("b", 2), ("b", 3)):
        turns.add(party, number)
    turns.add("b", 0, first=True)
    assert [turns.take(lambda item: item < 5) for _ in range(4)] == [0, 2, 3, None]
    assert [turns.take(), turns.take(), turns.take()] == [9, 1, None]


def test_a_removed_item_waits_no_more() -> None:
    turns: Turns[int] = Turns()
    turns.add("a", 1)
    turns.remove("a", 2)
    turns.remove("b", 1)
    assert (turns.waiting("a"), turns.waiting("b"), list(turns)) == (1, 0, [1])
    turns.remove("a", 1)
    assert (len(turns), turns.take()) == (0, None)
