"""Text of other parties is made harmless."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from deepgrid.plain_text import mark_controls, plain

STEERING = {"Cc", "Cf", "Cs", "Zl", "Zp"}


@given(st.text())
def test_nothing_that_steers_is_left(text: str) -> None:
    for made in (plain(text), mark_controls(text)):
        assert not {unicodedata.category(c) for c in made} & STEERING


def test_marks_name_the_character() -> None:
    assert mark_controls("a\u202eb\x1b[31m\n") == "a[U+202E]b[U+001B][31m[U+000A]"
    assert mark_controls("naïve 中 ok") == "naïve 中 ok"
