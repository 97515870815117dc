"""The pages of situations have all markers of the tests, and each row says something."""

from __future__ import annotations

import pytest

from tests.situations import PAGES, Page, situations, text_of


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path.stem)
def test_the_page_of_situations_is_as_the_tests_say(page: Page) -> None:
    assert page.path.read_text() == text_of(page), "write the page again: .venv/bin/python -m tests.situations"


def test_every_situation_is_complete_and_told_once() -> None:
    rows = situations()
    topics = {topic for page in PAGES for topic in page.topics}
    assert all(row.topic in topics and row.situation and row.happens for row in rows)
    told = [row.situation for row in rows]
    assert len(set(told)) == len(told)
