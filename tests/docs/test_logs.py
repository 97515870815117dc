"""docs/reference/logs.md lists every log line of the code, at its level, and says what to do."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.log_lines import log_lines

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/reference/logs.md"
ROW = re.compile(r"^\| (info|warning|error) \| `` ?(.+?) ?`` \| (.+?) \| (.+?) \|$")


def documented() -> dict[tuple[str, str], str]:
    """Return what the page says to do, by level and event."""
    rows = [found.groups() for line in PAGE.read_text().splitlines() if (found := ROW.match(line))]
    return {(level, event): action for level, event, _, action in rows}


def test_the_page_lists_each_log_line_of_the_code():
    page = documented()
    missing = [line for line in log_lines(ROOT) if (line.level, line.event) not in page]
    assert not missing, "add these to docs/reference/logs.md"


def test_the_page_lists_no_line_that_the_code_does_not_log():
    code = {(line.level, line.event) for line in log_lines(ROOT)}
    assert sorted(set(documented()) - code) == []


def test_each_line_says_what_to_do():
    assert all(len(action.split()) >= 2 for action in documented().values())
