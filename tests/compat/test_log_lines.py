"""Output becomes one message per line, for any chunks and with any number of followers."""

from __future__ import annotations

import random

import pytest

from deepgrid.compat.logger_api.log_lines import LONGEST_LINE_BYTES, PART_BYTES, LineMessages
from deepgrid.compat.logger_api.logger_pb2 import ReadResponse

AT_NS = 1_700_000_000_000_000_007


def lines_of(pieces: list[bytes]) -> list[bytes]:
    splitter, found = LineMessages(), list[bytes]()
    batches = [batch for piece in pieces for batch in splitter.batches(piece, AT_NS)]
    for batch in (*batches, *splitter.rest(AT_NS)):
        assert batch, "no batch is empty"
        answers = [ReadResponse.FromString(message) for message in batch]
        assert {answer.timestamp for answer in answers} == {AT_NS}
        found += [answer.data for answer in answers]
    return found


@pytest.mark.parametrize("most", [3, 200, 3 * PART_BYTES])
def test_pieces_of_any_size_give_the_same_lines(most: int) -> None:
    made = random.Random(most)
    lines = [bytes(made.choices(b"ab \0\xff", k=made.choice((0, 1, 7, 90)))) for _ in range(2000)]
    text, pieces, at = b"\n".join(lines) + b"\r\nthe rest", [], 0
    while at < len(text):
        size = made.randrange(1, most + 1)
        pieces.append(text[at : at + size])
        at += size
    assert lines_of(pieces) == lines_of(pieces) == [*lines, b"the rest"]


@pytest.mark.parametrize("size", [1000, 100_000])
def test_a_long_line_comes_in_parts(size: int) -> None:
    text = b"x" * (2 * LONGEST_LINE_BYTES + 5)
    pieces = [(text + b"\n")[at : at + size] for at in range(0, len(text) + 1, size)]
    found = lines_of([*pieces, b"y\n"])
    assert b"".join(found) == text + b"y"
    assert found[-1] == b"y"
    assert max(map(len, found)) <= LONGEST_LINE_BYTES
