"""Every row of the table of ends in docs/explanation/billing.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "billing.md"


def test_each_end_in_the_table_has_a_test() -> None:
    table = PAGE.read_text().split("## Who pays for an end")[1].split("\n\n")[2]
    rows = table.splitlines()[2:]
    assert len(rows) > 15
    for row in rows:
        files = re.findall(r"`(tests/\w+/test_\w+\.py)`", row)
        assert files, row
        assert all((ROOT / file).exists() for file in files), row
