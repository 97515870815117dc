"""Names of clusters and errors of jobs that are made to deceive the readers of a usage report."""

from __future__ import annotations

import csv
import io

import pytest

from deepgrid.billing.usage.usage_files import as_csv, file_rows
from deepgrid.billing.usage.usage_page import page
from tests.billing.usage.deceptive import EVIL, OURS, cells, evil_report, tags, visible_of


@pytest.mark.attack(
    "a cluster's name or a job's error with Markdown, HTML, links or control characters", attacker="a provider",
    gain="nothing: the usage report shows it as text", defence="all that means something is escaped, the rest named",
)  # fmt: skip
@pytest.mark.parametrize("text", EVIL)
def test_names_and_errors_stay_text_on_the_page(text: str) -> None:
    shown = page(evil_report(text), b"png")
    assert tags(shown) <= OURS
    assert "#" not in shown.replace("## ", "").replace("# Usage", "").replace("\\#", "")
    seen = [cell for cell in cells(shown) if "\n" not in cell]
    assert sum(cell.endswith(visible_of(text)) and cell.strip() != "" for cell in seen) >= 2, seen
    assert not any(c in shown for c in "\x1b\u202e\u200b")


@pytest.mark.attack(
    "a cluster's name or a job's error that is a formula in a spreadsheet", attacker="a provider",
    gain="nothing: no cell of the CSV file is a formula", defence="a quote before each sign that begins a formula",
)  # fmt: skip
@pytest.mark.parametrize("text", EVIL)
def test_no_cell_of_the_csv_is_a_formula(text: str) -> None:
    rows = list(csv.reader(io.StringIO(as_csv(file_rows(evil_report(text))))))
    assert len(rows) == 3 and len({len(row) for row in rows}) == 1
    for row in rows:
        assert not any(cell.strip().startswith(("=", "+", "-", "@", "\t", "\r")) for cell in row)
    as_semicolons = list(csv.reader(io.StringIO(as_csv(file_rows(evil_report(f'a";{text}')))), delimiter=";"))
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in as_semicolons for cell in row)
