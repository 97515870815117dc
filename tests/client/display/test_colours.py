"""Colours of a job's output stay readable, and end with their line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepgrid.client.display.text import COLOUR, LogLines


def shown(line: str) -> str:
    (found,) = LogLines().feed(f"{line}\n".encode())
    return found


@pytest.mark.parametrize(
    ("codes", "kept"),
    [
        ("31", "31"), ("1;31", "1;31"), ("31;1", "1;31"), ("01;31", "1;31"), ("92", "92"), ("33;44", "33;44"),
        ("38;5;196", "38;5;196"), ("38;5;2", "32"), ("48;5;12;97", "97;104"), ("38;2;255;100;0", "38;2;255;100;0"),
        ("38:2::255:100:0", "38;2;255;100;0"), ("38:2:255:100:0", "38;2;255;100;0"), ("38:5:196", "38;5;196"),
        ("4;31", "31"), ("4:3;31", "31"), ("7;5;31", "31"), ("31;8", "31"), ("40;32", "32;40"), ("0;;31", "31"),
    ],
)  # fmt: skip
def test_colours_and_bold_letters_are_kept(codes: str, kept: str) -> None:
    assert shown(f"\x1b[{codes}mtext") == f"\x1b[{kept}mtext\x1b[0m"


@pytest.mark.parametrize(
    "codes", ["4", "8", "39", "22", "0", "", "38", "38;5", "38;5;999", "38;2;1;2", "31;39", "1;22", "9" * 65]
)
def test_other_codes_leave_text_plain(codes: str) -> None:
    assert shown(f"\x1b[{codes}mtext") == "text"


def test_what_changes_is_written_once() -> None:
    assert shown("\x1b[31ma\x1b[31mb\x1b[1mc\x1b[md") == "\x1b[31mab\x1b[0m\x1b[1;31mc\x1b[0md"


def test_a_colour_that_was_left_out_returns_on_another_background() -> None:
    assert shown("\x1b[30;40ma\x1b[41mb") == "a\x1b[30;41mb\x1b[0m"


def test_a_line_does_not_colour_the_next_one() -> None:
    assert LogLines().feed(b"\x1b[31mone\ntwo\n") == ["\x1b[31mone\x1b[0m", "two"]


@given(st.lists(st.sampled_from(["a", "\x1b[", "0", "1", "31", "38", "48", ";", ":", "5", "2", "255", "m", "\x1b[8m"])))
def test_what_was_written_anew_stays_as_it_is(pieces: list[str]) -> None:
    once = shown("".join(pieces))
    assert shown(once) == once
    assert "\x1b" not in COLOUR.sub("", once)
