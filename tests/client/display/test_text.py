"""Text that strangers print or write on chain cannot control the customer's terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepgrid.client.display.text import LONGEST_LINE, LogLines, moment_utc
from deepgrid.plain_text import plain


@pytest.mark.parametrize(
    ("chunk", "lines"),
    [
        (b"one\ntwo\n", ["one", "two"]),
        (b"10%\r50%\r100%\n", ["10%", "50%", "100%"]),
        (b"dos\r\nline\r\n", ["dos", "line"]),
        (b"\x1b[2J\x1b[10;3Hmoved\x1b[K\x1b[1A\n", ["moved"]),
        (b"\x1b[1;31mred\x1b[0m\n", ["\x1b[1;31mred\x1b[0m"]),
        (b"\x1b]0;title\x07a\x1b]52;c;aGk=\x1b\\b\n", ["ab"]),
        (b"\x1bPdevice\x1b\\c\x1b7\x1b8\x1bcd\x1b(B\n", ["cd"]),
        (b"bell\x07 back\x08\x7f\tkept\n", ["bell back\tkept"]),
        ("caf\u00e9 \u009b2J\n".encode(), ["caf\u00e9 2J"]),
        (b"\xff\xfe\n", ["\ufffd\ufffd"]),
        (b"\x1b", [""]),
    ],
)
def test_lines_of_output(chunk: bytes, lines: list[str]) -> None:
    assert LogLines().feed(chunk, final=True) == lines


def test_an_unfinished_line_is_held_until_it_ends() -> None:
    lines = LogLines()
    assert lines.feed(b"half") == []
    assert lines.feed(b" a line\nnext") == ["half a line"]
    assert lines.feed(b"", final=True) == ["next"]
    assert lines.feed(b"", final=True) == []


@given(
    st.lists(st.sampled_from([b"a", "\u20ac".encode(), b"\r", b"\n", b"\x1b[31m", b"\x1b[2K", b"\x1b]0;t\x07"])),
    st.data(),
)
def test_where_chunks_are_cut_changes_nothing(pieces: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=4)))
    lines, seen = LogLines(), []
    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        seen += lines.feed(whole[start:end])
    seen += lines.feed(b"", final=True)
    assert seen == LogLines().feed(whole, final=True)


@given(st.binary(max_size=200))
def test_nothing_but_colours_follows_an_escape(chunk: bytes) -> None:
    import re

    for line in LogLines().feed(chunk, final=True):
        rest = re.sub(r"\x1b\[[0-9;:]*m", "", line)
        assert not any((ord(c) < 32 and c != "\t") or 127 <= ord(c) < 160 for c in rest)


def test_a_job_that_never_ends_its_line_does_not_fill_the_memory() -> None:
    lines = LogLines()
    (first,) = lines.feed(b"x" * (LONGEST_LINE + 5))
    assert len(first) == LONGEST_LINE
    assert lines.feed(b"\n") == ["xxxxx"]


@pytest.mark.parametrize(
    ("text", "harmless"),
    [("alpha", "alpha"), ("a\x1b[2Jb\nc", "a [2Jb c"), ("txt\u202egpj", "txt gpj"), ("é 漢", "é 漢")],
)
def test_names_from_the_chain_stay_on_their_line(text: str, harmless: str) -> None:
    assert plain(text) == harmless


def test_a_moment_in_utc_is_the_same_on_every_machine() -> None:
    assert moment_utc(0) == "1970-01-01 00:00:00 UTC"


def test_a_long_line_comes_in_parts_that_say_that_they_continue() -> None:
    lines = LogLines()
    long = "é" * (2 * LONGEST_LINE)
    found = lines.feed_parts(f"a\n{long[:-1]}".encode()) + lines.feed_parts(f"{long[-1]}\nb".encode(), final=True)
    assert found == [("a", False), (long[:LONGEST_LINE], True), (long[LONGEST_LINE:], False), ("b", False)]
    assert LogLines().feed_parts(b"\n\n", final=True) == [("", False), ("", False)]
