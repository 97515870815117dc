"""The bar of a sweep: on the error output of a terminal, and nowhere else."""

from __future__ import annotations

import io
import re
import sys

import pytest

from deepgrid.client.display.html import progress_html
from deepgrid.client.display.progress import progress_bar


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def terminal_of(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Make the error output a terminal. A fixture could not: pytest sets the streams again before the test."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    return stream


def _count(*ends: bool, shown: bool = True) -> None:
    with progress_bar(3, shown=shown) as step:
        for has_finished in ends:
            step(has_finished)


def test_a_terminal_shows_how_many_jobs_are_over(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    monkeypatch.setattr(sys, "stdout", stdout := io.StringIO())
    _count(True, False, True)
    assert "3/3 jobs over, 1 did not finish" in re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())
    assert (stdout.getvalue(), sys.stdout is stdout, sys.stderr is terminal) == ("", True, True)


def test_nothing_is_written_without_a_terminal_or_when_it_is_switched_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = terminal_of(monkeypatch)
    _count(True, shown=False)
    assert terminal.getvalue() == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    _count(True)
    assert stream.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", None)
    _count(True)


def test_a_notebook_gets_a_bar_and_a_sentence() -> None:
    page = progress_html(2, 1, 3)
    assert page == '<progress max="3" value="2"></progress> 2 of 3 jobs are over, 1 did not finish'
    assert progress_html(0, 0, 3).endswith("0 of 3 jobs are over")
