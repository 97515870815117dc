"""The page of attacks matches the tests, and there are as many attacks as documented."""

from __future__ import annotations

from tests.attacks.page import PAGE, attacks, page

AT_LEAST = 80


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "write the page again: .venv/bin/python -m tests.attacks.page"


def test_there_are_many_attacks_by_different_attackers() -> None:
    rows = attacks()
    assert len(rows) >= AT_LEAST
    assert all(row.attack and row.attacker and row.gain and row.defence for row in rows)
