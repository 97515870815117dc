"""The page of situations has all markers of the tests, and each row says something."""

from __future__ import annotations

from tests.situations import PAGE, TOPICS, page, situations


def test_the_page_of_situations_is_as_the_tests_say() -> None:
    assert PAGE.read_text() == page(), "write the page again: .venv/bin/python -m tests.situations"


def test_every_situation_is_complete_and_told_once() -> None:
    rows = situations()
    assert all(row.topic in TOPICS and row.situation and row.happens for row in rows)
    told = [row.situation for row in rows]
    assert len(set(told)) == len(told)
