"""The client reports the missing parts of a log."""

from __future__ import annotations

import pytest

from deepgrid.client import LogStatus

SENTENCES = [
    (LogStatus(104_857_600, final=True, closed=True), "The log is whole: 104,857,600 bytes."),
    (LogStatus(9, 92_274_688, final=True, closed=True), "The log is not whole: 92,274,688 bytes are left out."),
    (LogStatus(9, pending=5_000), "The log is not whole: 5,000 bytes are still to come."),
    (LogStatus(9), "The log is not whole: more may come."),
    (LogStatus(9, final=True), "The log is not whole: its cluster did not deliver its end."),
    (
        LogStatus(9, 7, 5, final=True),
        "The log is not whole: 7 bytes are left out, and its cluster did not deliver the last 5 bytes.",
    ),
]


@pytest.mark.parametrize(("status", "sentence"), SENTENCES)
def test_a_status_is_a_sentence(status: LogStatus, sentence: str) -> None:
    assert status.words == sentence
    assert status.is_whole == sentence.startswith("The log is whole")
